//! Where source secrets come from: the port, its cache, and the provider for local use.
