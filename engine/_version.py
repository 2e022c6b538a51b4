"""The engine's version, which run ids and manifests hold."""

__version__ = "0.2.0"
