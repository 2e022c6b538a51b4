"""Questions to an open run: its alignment, its entities and their neighbourhoods, relations, proxies, and what to review next."""
