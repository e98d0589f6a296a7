-- One step of one member of a scope of send tokens. Everything a scope has is in one hash: field `s` is the scope,
-- `m<id>` a member. Times are microseconds of the engine's clock; rates are tokens per second.
--
-- Answers {tokens granted, share, rate, members}, the rates in thousandths. Rules are those of the core's
-- `src/paced/mod.rs`.
local key, member = KEYS[1], 'm' .. ARGV[1]
local ARGS = {'seq', 'leave', 'want', 'held', 'back', 'demand', 'spent', 'throttled', 'age', 'trip', 'pause',
  'ceiling', 'initial', 'floor', 'burst', 'lease', 'absent', 'keep'}
local SCOPE = {'last', 'tokens', 'ceiling', 'lowest', 'turn', 'level', 'members', 'peak', 'since', 'ramp', 'trip',
  'delivered', 'granted', 'window', 'count', 'before', 'pause', 'out', 'woke'}
local MEMBER = {'seen', 'seq', 'grant', 'demand', 'credit', 'out'}
local SECOND = 1000000

-- Reads so many numbers by their names, or nothing if it is anything else.
local function numbers(text, names)
  local found, i = {}, 0
  for word in string.gmatch(text, '%S+') do
    local number = tonumber(word)
    i = i + 1
    if not number or number ~= number or number < 0 or number > 9007199254740992 or not names[i] then return nil end
    found[names[i]] = number
  end
  return i == #names and found or nil
end

local function text(record, names)
  local words = {}
  for i, name in ipairs(names) do words[i] = string.format('%.17g', record[name]) end
  return table.concat(words, ' ')
end

local function broken(field) return redis.error_reply('BROKEN the field ' .. field) end

local a = numbers(ARGV[2], ARGS)
if not a then return redis.error_reply('BROKEN the ask') end
local time = redis.call('TIME')
local now = tonumber(time[1]) * SECOND + tonumber(time[2])
local stored = redis.call('HMGET', key, 's', member)
local s, m
if stored[1] then
  s = numbers(stored[1], SCOPE)
  if not s then return broken('s') end
else -- a scope that nobody remembers starts empty
  s = {last = now, tokens = 0, ceiling = a.ceiling, lowest = a.ceiling, turn = 0, level = 0, members = 0, peak = 0,
    since = now, ramp = 0, trip = 0, delivered = 0, granted = 0, window = now, count = 0, before = 0, pause = 0, out = 0, woke = now}
end
local joins = not stored[2]
if joins then
  m = {seen = now, seq = 0, grant = 0, demand = 0, credit = 0, out = 0}
else
  m = numbers(stored[2], MEMBER)
  if not m then return broken(member) end
end

-- The engine's clock may be set back, and another engine's may be behind: what it has not lived through mints nothing.
if now < s.last and s.last - now < SECOND then now = s.last end
for _, name in ipairs({'last', 'since', 'window', 'woke'}) do s[name] = math.min(s[name], now) end
s.pause = math.min(s.pause, now + 60 * SECOND)
s.turn = math.min(s.turn, now + 10 * SECOND)
s.ceiling = math.min(s.ceiling, a.ceiling)
s.lowest = math.min(s.lowest, a.ceiling)
-- Nobody asked for so long that leases have died: the engine was away, and it is not for the members to pay. What was
-- minted then is dropped, since they may have gone on alone.
local away = now - s.last > a.absent / 2
if away then s.woke = now end

-- Rule 2: what a cut takes.
local function cut() return math.min(0.45, 0.1 + 1 / math.sqrt(math.max(s.peak, 0.01))) end

local function within(rate) return math.max(math.min(rate, s.ceiling), math.min(a.floor, s.ceiling)) end

-- Rules 2, 3, 4 and 6.
local function rate_at(t)
  if s.peak == 0 then return within(a.initial) end
  local elapsed, trip = math.max(t - s.since, 0) / SECOND, s.trip / SECOND
  local step = math.max(0.25, 2 * trip)
  local ramp = s.ramp * step
  if elapsed < ramp then return within(s.peak * (1 - cut()) * 2 ^ ((elapsed - ramp) / step)) end
  elapsed = elapsed - ramp
  local back, doubling = math.max(2.5, math.min(12, 15 / s.peak)), math.max(2.5, 2 * trip)
  local factor
  if elapsed < back then
    factor = 1 - cut() * (1 - elapsed / back) ^ 5
  else
    factor = 1 + math.min((elapsed - back) / doubling, 6) ^ 3
  end
  local line = math.min(0.15 * math.sqrt(s.peak), 0.06 * s.peak) * math.min(elapsed, 4096)
  return within(s.peak * factor + line)
end

local function most() return math.max(1, rate_at(now) * a.burst / SECOND) end

-- Mints at the rate that the time since the last step began with. In a pause nothing is minted.
local minted = math.max(0, now - math.max(s.last, s.pause)) / SECOND * rate_at(s.last)
s.tokens = away and 0 or math.min(math.min(s.tokens, most()) + minted, most())
s.last = now

local function answer(grant)
  local share = math.min(math.max(m.demand, 0.1 * rate_at(now) / math.max(s.members, 1)), s.level)
  return {grant, math.floor(share * 1000), math.floor(rate_at(now) * 1000), s.members}
end

-- A lease that was asked for again is the same lease.
if not joins and a.seq == m.seq then return answer(m.grant) end
if not joins and a.seq < m.seq then return redis.error_reply('STALE the lease is not the last one') end

-- What was delivered: of what was spent, all that was not throttled.
local function deliver()
  local delivered = math.max(0, a.spent - a.throttled)
  if now - s.window >= SECOND then
    s.before = now - s.window < 2 * SECOND and s.count or 0
    s.count, s.window = 0, now
  end
  s.count, s.delivered = s.count + delivered, s.delivered + delivered
end

local function delivered_rate()
  local windows = now - s.window
  if s.before > 0 then windows = windows + SECOND end
  return (s.before + s.count) / math.max(windows, SECOND / 20) * SECOND
end

-- Rules 1, 5, 6 and 8. A fleet's round trip is that of a request and a lease on top: what was granted before a cut is
-- spent, and told, after it. So the count of what was delivered since is short at first, and no ground for an estimate.
local function throttle()
  local sent, span = now - a.age, now - s.since
  local trip = math.min(a.trip, 60 * SECOND) + a.lease
  if s.peak > 0 and (sent <= s.since or span < 2 * trip) then return end
  local at, count, responses = rate_at(math.min(sent, now)), s.delivered, s.before + s.count
  local average, expected = (count + 2) / math.max(span, 1) * SECOND, s.granted
  local steady = math.min(rate_at(now), s.peak, expected / math.max(span, 1) * SECOND)
  if (s.ramp > 0 and count == 0) or (expected >= 4 and count == 0) or (expected >= 32 and count * 8 < expected) then
    if s.peak == 0 then s.peak = at end
    s.ramp = math.min(s.ramp + 2, 16)
  elseif s.peak == 0 then
    if s.before >= 8 then s.peak = delivered_rate() else s.peak, s.ramp = at, 2 end
  elseif s.ramp > 0 then
    s.peak, s.ramp = math.min(math.max(average, 0.7 * at), at), 0
  elseif average < 0.75 * steady and span > 5 * a.lease and span < 2 * SECOND then
    s.peak = average
  elseif responses >= 6 and delivered_rate() >= 0.57 * at then
    s.peak = math.min(delivered_rate(), at)
  else
    s.peak = at
  end
  s.peak = math.max(within(s.peak), 0.001)
  s.since, s.trip, s.delivered, s.granted = now, trip, 0, 0
end

deliver()
if a.throttled > 0 then throttle() end
-- Rule 9.
if a.pause > 0 then s.pause = math.max(s.pause, now + math.min(a.pause, 60 * SECOND)) end
s.tokens = math.min(s.tokens + a.back, most())

-- The turn: those who have been silent for too long are forgotten, and the level is found up to which everyone's
-- demand is met. Its cost grows with the members, so that it comes more seldom with many.
local function turn(own)
  local all = redis.call('HGETALL', key)
  local demands, least = {}, 0
  s.out = m.out
  for i = 1, #all, 2 do
    local name = all[i]
    if string.sub(name, 1, 1) == 'm' and name ~= member then
      local other = numbers(all[i + 1], MEMBER)
      if not other then return broken(name) end
      if math.abs(now - math.max(other.seen, s.woke)) > a.absent then
        redis.call('HDEL', key, name)
      else
        demands[#demands + 1] = other.demand
        if other.out > 0 and now - other.seen > a.absent / 2 then
          other.out = 0
          redis.call('HSET', key, name, text(other, MEMBER))
        end
        s.out = s.out + other.out
      end
    end
  end
  if own then demands[#demands + 1] = own end
  s.members = #demands
  s.ceiling, s.lowest = s.lowest, a.ceiling
  local rate, left = rate_at(now), #demands
  least = 0.1 * rate / math.max(left, 1)
  table.sort(demands)
  local rest = rate
  s.level = nil
  for _, demand in ipairs(demands) do
    demand = math.max(demand, least)
    if demand * left >= rest then s.level = rest / left break end
    rest, left = rest - demand, left - 1
  end
  -- All are met: what is left is there for anyone.
  if not s.level then s.level = math.max(demands[#demands] or 0, least) + rest end
  s.turn = now + math.max(SECOND / 4, #demands * 1000)
end

local function close(...)
  redis.call('HSET', key, 's', text(s, SCOPE), ...)
  redis.call('PEXPIRE', key, a.keep)
end

if a.leave > 0 then
  if not joins then
    redis.call('HDEL', key, member)
    s.members = math.max(0, s.members - 1)
    s.out = math.max(0, s.out - m.out)
    s.turn = 0
  end
  close()
  return {0, 0, 0, s.members}
end

m.demand = a.demand
if now >= s.turn or (joins and s.members < 64) then
  local wrong = turn(m.demand)
  if wrong then return wrong end
end

-- A member's own part grows at its share, up to what it may hold. Of what nobody else takes it may have more,
local share = math.min(math.max(m.demand, 0.1 * rate_at(now) / math.max(s.members, 1)), s.level)
local hold = math.max(1, share * a.lease / SECOND)
m.credit = math.min(m.credit + math.max(0, now - math.max(m.seen, s.woke)) / SECOND * share, hold)
local part = math.min(m.credit, hold - a.held)
-- once those who were alone are back.
if now - s.woke > a.absent / 4 then part = math.max(part, s.tokens - most() / 2) end
-- All together hold no more than a lease at the allowance, and a token each. What a silent member was granted counts
-- until it has died.
local others = math.max(0, s.out - m.out)
local room = s.ceiling * a.lease / SECOND + s.members - others - a.held
local grant = math.max(0, math.floor(math.min(a.want, part, s.tokens, room)))
if now < s.pause then grant = 0 end
s.tokens, s.granted = s.tokens - grant, s.granted + grant
m.credit = math.max(0, m.credit - grant)
m.out = a.held + grant
s.out = others + m.out
m.seen, m.seq, m.grant = now, a.seq, grant
close(member, text(m, MEMBER))
return answer(grant)
