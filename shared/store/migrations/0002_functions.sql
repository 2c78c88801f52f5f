-- Pure functions that tables, queries and filters are built on.
set local role hookstead_owner;

-- The delivery of one event to one subscription: the event's 48-bit time prefix,
-- then SHA-256(event id || subscription id), marked as UUID version 8 and as the
-- RFC 4122 variant. One expression, so that the planner can inline it.
-- Bit n of a bytea is bit n % 8, counted from the lowest, of byte n / 8.
create function hookstead.delivery_id(event_id uuid, subscription_id uuid)
returns uuid
language sql immutable strict parallel safe
as $$
    select pg_catalog.encode(
        set_bit(set_bit(set_bit(set_bit(set_bit(set_bit(
            substring(uuid_send(event_id), 1, 6)
                || substring(sha256(uuid_send(event_id) || uuid_send(subscription_id)), 1, 10),
            55, 1), 54, 0), 53, 0), 52, 0),
            71, 1), 70, 0),
        'hex')::uuid
$$;

-- The smallest id of a UTC day: the boundary between two day partitions.
create function hookstead.day_start_id(day date)
returns uuid
language sql immutable strict parallel safe
as $$
    select rpad(
        lpad(to_hex((extract(epoch from day::timestamp) * 1000)::bigint), 12, '0'), 32, '0'
    )::uuid
$$;

-- Event type patterns with '*' as patterns for LIKE; everything else is literal.
create function hookstead.like_patterns(event_types text[])
returns text[]
language sql immutable strict parallel safe
as $$
    select coalesce(
        array_agg(
            replace(replace(replace(replace(t.pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')
            order by t.place
        ),
        '{}')
    from unnest(event_types) with ordinality as t (pattern, place)
$$;

-- Whether a payload passes a subscription's filter: null when it does not, else
-- the microseconds spent. A filter passes when the first item it yields is there
-- and is neither false nor null, so `$ ? (@.x > 1)` and `$.x > 1` both do what is
-- meant. No filter passes everything. It never raises: a filter that fails on
-- this payload has not matched it.
create function hookstead.filter_match_us(filter jsonpath, payload jsonb)
returns integer
language plpgsql volatile parallel safe
as $$
declare
    started_at timestamptz;
    first_item jsonb;
begin
    if filter is null then
        return 0;
    end if;
    if payload is null then
        return null;
    end if;
    started_at := clock_timestamp();
    begin
        first_item := jsonb_path_query_first_tz(payload, filter, '{}', true);
    exception when others then
        return null;
    end;
    if first_item is null or first_item in ('false'::jsonb, 'null'::jsonb) then
        return null;
    end if;
    return least(extract(epoch from clock_timestamp() - started_at) * 1000000, 2147483647)::integer;
end
$$;

-- The policy of a subscription that names none: an attempt at once, then nine
-- more over three days. Times in seconds unless the name says otherwise. It never
-- changes: deliveries refer to it by having no policy of their own. A better
-- default will be a function of another name.
create function hookstead.default_retry_policy()
returns jsonb
language sql immutable parallel safe
as $$
    select jsonb '{
        "schedule_s": [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400],
        "jitter": 0.2,
        "timeout_ms": 15000,
        "max_age_s": 432000,
        "give_up_after_identical": 5
    }'
$$;

create function hookstead.is_retry_policy(policy jsonb)
returns boolean
language sql immutable parallel safe
as $$
    select case
        when policy is null or jsonb_typeof(policy) <> 'object' then false
        -- Exactly these five: a misspelt key is an error, not a default.
        when policy - array['schedule_s', 'jitter', 'timeout_ms', 'max_age_s', 'give_up_after_identical']
            <> '{}' then false
        when jsonb_typeof(policy -> 'schedule_s') is distinct from 'array'
            or jsonb_typeof(policy -> 'jitter') is distinct from 'number'
            or jsonb_typeof(policy -> 'timeout_ms') is distinct from 'number'
            or jsonb_typeof(policy -> 'max_age_s') is distinct from 'number'
            or coalesce(jsonb_typeof(policy -> 'give_up_after_identical'), '') not in ('number', 'null')
            then false
        else jsonb_array_length(policy -> 'schedule_s') <= 50
            and not jsonb_path_exists(policy, 'strict $.schedule_s[*] ? (@.type() != "number")')
            and not jsonb_path_exists(policy, '$.schedule_s[*] ? (@ < 0 || @ > 2592000)')
            and (policy -> 'jitter')::numeric between 0 and 1
            and (policy -> 'timeout_ms')::numeric between 1 and 900000
            and (policy -> 'max_age_s')::numeric between 1 and 31536000
            and case jsonb_typeof(policy -> 'give_up_after_identical')
                when 'null' then true
                else (policy -> 'give_up_after_identical')::numeric between 1 and 51
            end
    end
$$;
