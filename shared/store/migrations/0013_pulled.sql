-- Deliveries that their consumer fetches are never put into the queue, so the relay
-- has to know a destination's kind, and nothing else of it. Of a subscription that
-- fails or is limited only so much goes there as it may take.
set local role hookstead_owner;

alter table hookstead.subscriptions
    add column destination_kind text generated always as (destination ->> 'kind') stored,
    add constraint subscriptions_kind_of_destination_length check (char_length(destination_kind) <= 32);

grant select (destination_kind, consecutive_failures, rate_limit_per_s)
    on hookstead.subscriptions to hookstead_relay;

-- What no statement of theirs uses since finishing is a function.
revoke update (state, state_reason, lease_id, lease_expires_at, leased_by, last_error_class)
    on hookstead.live_deliveries from hookstead_relay;
revoke execute on function hookstead.partition_days_ahead(date) from hookstead_relay;
revoke update (deferred_until_limit, last_error_class) on hookstead.live_deliveries from hookstead_worker;
revoke select on hookstead.sources from hookstead_worker;
grant select (source_id, name, kind, report_event_type) on hookstead.sources to hookstead_worker;
