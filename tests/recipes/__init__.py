"""The recipes of docs/extending.md: ``test_recipes.py`` applies them to a copy of the project, in which ``members.py`` runs."""
