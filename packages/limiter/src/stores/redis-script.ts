import type { Twin } from '../algorithms/algorithm.ts'

/**
 * The one script that counts in Redis: every meter's moves, and a wrapper that gives them their inputs and does their
 * effects. A batch of calls is judged in order, each by all its charges at once, on states read once and written once.
 *
 *   KEYS     one per key of a rule; its value holds the states of all levels of the rule
 *   ARGV[1]  JSON: now (left out: the server's clock), lingerMs,
 *            rules: [{ enforced, levels: [{ name, slots, scale, shape, patienceUs, held, … the meter's numbers }, …] }, …],
 *            calls: what + 4 * the number of charges, and for each charge rule, key and
 *              to take or look   cost; the rule is negative where the call may not wait
 *              to give back      cost, moment
 *              to renew a lease  the least and the most places held
 *   reply    numbers: now, then for each call that asks: allowed, and for each level delay, remaining, reset; -1 is never
 */
export function redisScript(twins: readonly Twin[]): string {
  const makers = twins.map(({ name, lua }) => `makers[${JSON.stringify(name)}] = function()${lua}\nend`)
  return `${HEAD}\n${makers.join('\n')}\n${WRAPPER}`
}

const HEAD = `
local floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
local makers = {}`

const WRAPPER = `
local LOOK, TAKE, GIVE_BACK = 0, 1, 2
-- Lua returns at most 8000 values at once; and no state is as large as the second
local MANY, MOST = 1000, 100000
-- Redis takes no expiry that is without end
local MOST_MS = 1e13
local call, pack, fetch = redis.call, struct.pack, struct.unpack

local request = cjson.decode(ARGV[1])
local rules, now = request.rules, request.now
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local formats = {}
local function formatOf(numbers)
  if not formats[numbers] then formats[numbers] = '<' .. string.rep('d', numbers) end
  return formats[numbers]
end

local made = {}
for r = 1, #rules do
  local rule, shapes = rules[r], {}
  local levels = rule.levels
  for l = 1, #levels do
    local level = levels[l]
    if not made[level.name] then made[level.name] = makers[level.name]() end
    level.moves, shapes[l] = made[level.name], level.shape
  end
  rule.shape = table.concat(shapes, ';') .. '\\n'
  -- most rules have one level, and its state is kept as it is stored
  rule.plain = #levels == 1 and levels[1].slots > 0 and levels[1].slots < MANY and formatOf(levels[1].slots + 1)
  rule.bytes = rule.plain and #rule.shape + levels[1].slots * 8 + 8
end

local stored = #KEYS <= MANY and call('MGET', unpack(KEYS))
-- what is known of each key: the state of each level, its rule, when it is idle, when it expires, whether it has changed
local entries = {}

local function numbersIn(raw, from)
  local count = (#raw - from + 1) / 8
  if count > MOST or count ~= floor(count) then return {}, 0 end
  local numbers = {}
  for first = 1, count, MANY do
    local size = min(MANY, count - first + 1)
    local some = { fetch(formatOf(size), raw, from + first * 8 - 8) }
    for i = 1, size do numbers[first + i - 1] = some[i] end
  end
  return numbers, count
end

local function textOf(numbers, count)
  local parts = {}
  for first = 1, count, MANY do
    local size = min(MANY, count - first + 1)
    parts[#parts + 1] = pack(formatOf(size), unpack(numbers, first, first + size - 1))
  end
  return table.concat(parts)
end

local function blank(level)
  local state = { n = level.slots }
  for slot = 1, level.slots do state[slot] = 0 end
  return state
end

-- A value begins with its shape, as in '2 1000000;2 60000000' and a line feed: slots and scale of each level. Then come
-- the states of all levels (where a shape says 0 slots, their number stands first), and when the value expires. What is
-- stored under a key and is none of that counts as nothing.
local function partsOf(raw)
  local shape = raw:match('^([%d.e+; -]+)\\n')
  if not shape then return {}, 0 end
  local numbers, count = numbersIn(raw, #shape + 2)
  local parts, from = {}, 0
  for words in shape:gmatch('[^;]+') do
    local part = { shape = words, scale = {} }
    for word in words:gmatch('%S+') do part.scale[#part.scale + 1] = tonumber(word) end
    part.n = table.remove(part.scale, 1)
    if part.n == 0 then
      from = from + 1
      part.n = numbers[from]
    end
    if not (part.n and part.n >= 0 and from + part.n < count) then return {}, 0 end
    for slot = 1, part.n do part[slot] = numbers[from + slot] end
    from = from + part.n
    parts[#parts + 1] = part
  end
  if from + 1 ~= count then return {}, 0 end
  return parts, numbers[count]
end

-- the level whose counts a new one goes on with: that of its period, else the next longer one, else the longest
local function ancestorOf(level, l, parts)
  local period, longer, longest = level.scale[1], nil, nil
  if not period or (parts[l] and parts[l].scale[1] == period) then return parts[l] end
  for p = 1, #parts do
    local other = parts[p].scale[1]
    if not other then return parts[l] end
    if other >= period and (not longer or other < longer.scale[1]) then longer = parts[p] end
    if not longest or other > longest.scale[1] then longest = parts[p] end
  end
  return longer or longest
end

local function inherited(level, part)
  local copy, isKnown = { n = part.n }, false
  for slot = 1, part.n do
    copy[slot] = part[slot]
    if part[slot] ~= 0 then isKnown = true end
  end
  if not isKnown then return nil end
  if part.shape == level.shape then return copy end
  if not level.moves.inherit or #part.scale ~= #level.scale then return nil end
  local state = level.moves.inherit(level, copy, part.scale, now)
  state.n = state.n or level.slots
  return state
end

-- the state that each level of a rule makes of what the same rule with another limit has left
local function adopt(entry, rule, parts)
  for l = 1, #rule.levels do
    local level = rule.levels[l]
    local part = ancestorOf(level, l, parts)
    entry[l] = part and inherited(level, part) or blank(level)
  end
  entry.rule = rule
end

local function load(key, rule)
  local raw, shape, entry = nil, rule.shape, nil
  if stored then raw = stored[key] else raw = call('GET', KEYS[key]) end
  if raw and #raw == rule.bytes and raw:sub(1, #shape) == shape then
    local state = { fetch(rule.plain, raw, #shape + 1) }
    entry = { state, rule = rule, expires = state[rule.levels[1].slots + 1], idleAt = 0, isChanged = false }
  else
    local parts, expires = partsOf(raw or '')
    entry = { nil, rule = rule, expires = expires, idleAt = 0, isChanged = false }
    adopt(entry, rule, parts)
  end
  entries[key] = entry
  return entry
end

-- a process that has just changed its rules may count one key by two limits
local function convert(entry, rule)
  local before, parts = entry.rule.levels, {}
  for l = 1, #before do
    local state = entry[l]
    parts[l] = state
    state.n, state.shape, state.scale = state.n or before[l].slots, before[l].shape, before[l].scale
  end
  adopt(entry, rule, parts)
end

local function entryOf(key, rule)
  local entry = entries[key]
  if not entry then return load(key, rule) end
  if entry.rule ~= rule then convert(entry, rule) end
  return entry
end

local function save(key, entry)
  local rule, idleAt, expires, text = entry.rule, entry.idleAt, entry.expires, nil
  if idleAt <= now then return call('DEL', KEYS[key]) end
  -- a key that lives long enough keeps its expiry, which is cheaper; else it gets some more, so that this lasts
  local keeps = idleAt <= expires
  local ttlMs = keeps or min(MOST_MS, ceil((idleAt - now) / 1000 * 1.25))
  if not keeps then expires = now + ttlMs * 1000 end
  if rule.plain then
    local state, count = entry[1], rule.levels[1].slots + 1
    state[count] = expires
    text = pack(rule.plain, unpack(state, 1, count))
  else
    local flat, n = {}, 0
    for l = 1, #rule.levels do
      local state = entry[l]
      if rule.levels[l].slots == 0 then
        n = n + 1
        flat[n] = state.n
      end
      for slot = 1, state.n do flat[n + slot] = state[slot] end
      n = n + state.n
    end
    flat[n + 1] = expires
    text = textOf(flat, n + 1)
  end
  if keeps then return call('SET', KEYS[key], rule.shape .. text, 'KEEPTTL') end
  call('SET', KEYS[key], rule.shape .. text, 'PX', string.format('%.0f', ttlMs + request.lingerMs))
end

local reply, n = { now }, 1
-- replies are whole numbers; longer than 285 years is never
local NEVER = 2 ^ 53

local function resetOf(level, idleAt)
  if idleAt <= now then return 0 end
  return (level.held or idleAt - now > NEVER) and -1 or idleAt - now
end

-- what each level says of a charge, after it was counted or not
local function report(entry, levels, delays, d)
  local last = 0
  for l = 1, #levels do
    local level, state, delay = levels[l], entry[l], delays[d + l]
    local moves = level.moves
    local idleAt = moves.idleAt(level, state)
    if idleAt > last then last = idleAt end
    reply[n + 1] = delay > NEVER and -1 or delay
    reply[n + 2] = moves.remaining(level, state, now)
    reply[n + 3] = resetOf(level, idleAt)
    n = n + 3
  end
  entry.idleAt = last
end

-- scratch space of one call: the entry, the wait and the fit of each charge, and the delay of each level
local met, waits, fitting, delays = {}, {}, {}, {}

local function judge(calls, at, size, counting)
  local allowed, d = true, 0
  for c = 1, size do
    local from = at + c * 3 - 3
    local r, key, cost, mayWait = calls[from], calls[from + 1], calls[from + 2], true
    if r < 0 then r, mayWait = -r, false end
    local rule, entry = rules[r], entries[key]
    if not entry or entry.rule ~= rule then entry = entryOf(key, rule) end
    local levels, wait, fits = rule.levels, 0, true
    for l = 1, #levels do
      local level = levels[l]
      local delay = level.moves.delay(level, entry[l], now, cost)
      d = d + 1
      delays[d] = delay
      if delay > 0 then
        if delay > wait then wait = delay end
        if not (mayWait and delay <= level.patienceUs) then fits = false end
      end
    end
    met[c], waits[c], fitting[c] = entry, wait, fits
    if not fits and rule.enforced then allowed = false end
  end
  n = n + 1
  reply[n] = allowed and 1 or 0
  counting, d = counting and allowed, 0
  for c = 1, size do
    local entry, cost = met[c], calls[at + c * 3 - 1]
    local levels = entry.rule.levels
    if counting and cost > 0 and fitting[c] then
      for l = 1, #levels do
        local level = levels[l]
        level.moves.take(level, entry[l], now, cost, waits[c])
      end
      entry.isChanged = true
    end
    report(entry, levels, delays, d)
    d = d + #levels
  end
  return at + size * 3
end

-- the same for most calls, which have one charge of one level
local function judgeOne(level, entry, cost, mayWait, counting)
  local moves, state = level.moves, entry[1]
  local delay = moves.delay(level, state, now, cost)
  local fits = delay == 0 or (mayWait and delay <= level.patienceUs)
  if counting and fits and cost > 0 then
    moves.take(level, state, now, cost, delay)
    entry.isChanged = true
  end
  local idleAt = moves.idleAt(level, state)
  entry.idleAt = idleAt
  reply[n + 1] = (fits or not entry.rule.enforced) and 1 or 0
  reply[n + 2] = delay > NEVER and -1 or delay
  reply[n + 3] = moves.remaining(level, state, now)
  reply[n + 4] = resetOf(level, idleAt)
  n = n + 4
end

local function amend(calls, at, size, move)
  for from = at, at + size * 4 - 4, 4 do
    local rule, key = rules[calls[from]], calls[from + 1]
    local entry, last = entryOf(key, rule), 0
    for l = 1, #rule.levels do
      local level, state = rule.levels[l], entry[l]
      if level.moves[move] then level.moves[move](level, state, now, calls[from + 2], calls[from + 3]) end
      last = max(last, level.moves.idleAt(level, state))
    end
    entry.idleAt, entry.isChanged = last, true
  end
  return at + size * 4
end

local calls, at = request.calls, 1
local last = #calls
while at <= last do
  local code = calls[at]
  local what = code % 4
  local size = (code - what) / 4
  if what > TAKE then
    at = amend(calls, at + 1, size, what == GIVE_BACK and 'giveBack' or 'renew')
  else
    local r, key = calls[at + 1], calls[at + 2]
    local rule = rules[r < 0 and -r or r]
    if size == 1 and #rule.levels == 1 then
      local entry = entries[key]
      if not entry or entry.rule ~= rule then entry = entryOf(key, rule) end
      judgeOne(rule.levels[1], entry, calls[at + 3], r > 0, what == TAKE)
      at = at + 4
    else
      at = judge(calls, at + 1, size, what == TAKE)
    end
  end
end
for key = 1, #KEYS do
  local entry = entries[key]
  if entry and entry.isChanged then save(key, entry) end
end
return reply
`
