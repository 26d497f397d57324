"""`bandwatch probe`, in parts: what is probed, what came of it, and how it looks."""
