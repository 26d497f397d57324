"""What tests are made with."""
