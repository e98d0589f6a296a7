-- One step of one member of a scope of retry tokens, which time does not mint: successes pay in,
-- retries pay out. Field `s` is what the pool holds, `c` its capacity and when a member said so,
-- `m<id>` the last lease of a member. Answers {tokens granted, what is left, members}.
local key, member = KEYS[1], 'm' .. ARGV[1]

local function number(text, most)
  local number = tonumber(text)
  if not number or number ~= number or number < 0 or number > most then return nil end
  return number
end

local LARGEST = 9007199254740992
local a, words = {}, string.gmatch(ARGV[2], '%S+')
for _, name in ipairs({'seq', 'leave', 'want', 'back', 'capacity', 'absent', 'keep'}) do
  a[name] = number(words(), LARGEST)
  if not a[name] then return redis.error_reply('BROKEN the ask') end
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local stored = redis.call('HMGET', key, 's', member, 'c')
-- A pool that is not remembered starts empty; in a file, as a third argument says, it is new and full.
local pool = ARGV[3] == 'file' and a.capacity or 0
if stored[1] then
  pool = number(stored[1], LARGEST)
  if not pool then return redis.error_reply('BROKEN the field s') end
end

-- The capacity is the largest that was said in the last minute: one member with less does not cut
-- the pool of the others.
local capacity, said = string.match(stored[3] or '', '^(%d+) (%d+)$')
capacity, said = number(capacity, 1e9) or 0, math.min(number(said, LARGEST) or 0, now)
if a.capacity >= capacity or now - said > 60000000 then capacity, said = a.capacity, now end

local function record(text)
  local a, b, c = string.match(text, '^(%d+) (%d+) (%d+)$')
  a, b, c = number(a, LARGEST), number(b, LARGEST), number(c, LARGEST)
  if a and b and c then return {seen = a, seq = b, grant = c} end
end

local function members() return math.max(0, redis.call('HLEN', key) - 2) end

if stored[2] then
  local last = record(stored[2])
  if not last then return redis.error_reply('BROKEN the field ' .. member) end
  if a.seq == last.seq then return {last.grant, math.floor(math.min(pool, capacity)), members()} end
  if a.seq < last.seq then return redis.error_reply('STALE the lease is not the last one') end
end
pool = math.floor(math.min(pool + a.back, capacity))

-- Those silent for too long are forgotten, a few at each step: what they held was theirs to spend,
-- and is lost.
local swept = redis.call('HRANDFIELD', key, 4)
for _, name in ipairs(type(swept) == 'table' and swept or {}) do
  if string.sub(name, 1, 1) == 'm' then
    local other = record(redis.call('HGET', key, name))
    if not other or math.abs(now - other.seen) > a.absent then redis.call('HDEL', key, name) end
  end
end

local grant = 0
if a.leave > 0 then
  redis.call('HDEL', key, member)
else
  -- At most an equal part of what there is, and one token if there is one: a deployment's budget is
  -- not for the first.
  local part = math.max(1, math.ceil(pool / math.max(1, members() / 4)))
  grant = math.floor(math.min(a.want, pool, part))
  redis.call('HSET', key, member, string.format('%.0f %.0f %.0f', now, a.seq, grant))
end
pool = pool - grant
redis.call('HSET', key, 's', string.format('%.0f', pool), 'c', string.format('%.0f %.0f', capacity, said))
redis.call('PEXPIRE', key, a.keep)
return {grant, pool, members()}
