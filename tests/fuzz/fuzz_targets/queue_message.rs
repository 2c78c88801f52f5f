//! What is read of a queue message is what was written, and nothing panics.
#![no_main]

use hookstead_domain::QueueMessage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(message) = QueueMessage::decode(text) {
        assert_eq!(QueueMessage::decode(&message.encode()), Ok(message));
    }
});
