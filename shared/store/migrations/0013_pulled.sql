-- Deliveries that their consumer fetches are never put into the queue, so the relay
-- has to know a destination's kind, and nothing else of it.
set local role hookstead_owner;

alter table hookstead.subscriptions
    add column destination_kind text not null generated always as (destination ->> 'kind') stored;

grant select (destination_kind) on hookstead.subscriptions to hookstead_relay;
