//! Webhook signature schemes as data: verify, sign, extract, answer handshakes. Pure.
