"""Why a target is slow, or impossibly fast, found out from outside: designed experiments and what they say. Pure."""
