"""The routes of the contract, a file a noun."""
