import type { Twin } from '../algorithms/algorithm.ts'
import { STATES } from './redis-script-states.ts'

/**
 * The one script that counts in Redis: every meter's moves, and a wrapper that gives them their inputs and does their
 * effects. A batch of calls is judged in order, each by all its charges at once, on states read once and written once.
 *
 *   KEYS     two per home, which is where the callers of a rule live: the young hash and the old one
 *   ARGV[1]  JSON: now (left out: the server's clock), lingerMs, fields: how many fields each home has,
 *            rules: [{ enforced, mark, levels: [{ name, slots, shape, patienceUs, held, … the meter's numbers }, …] }, …],
 *            homes: the home of each rule, numbers: those that are too large for a character
 *   ARGV[2]  the calls, a character for each number, from '!' for 0 up to '}'; '~' stands for the next of \`numbers\`:
 *            what + 4 * the number of charges, and for each charge 2 * rule (+ 1 where the call may wait), field and
 *              to take or look   cost
 *              to give back      cost, moment
 *              to renew a lease  the least and the most places held
 *   ARGV[…]  the fields of each home, one per key of the rule
 *   reply    numbers: now, then for each call that asks and each level remaining and reset (-1 is never), and where the
 *            call cannot pass at once, before them the delay, negative (the least there is: never)
 */
export function redisScript(twins: readonly Twin[]): string {
  const makers = twins.map(({ name, lua }) => `makers[${JSON.stringify(name)}] = function()${lua}\nend`)
  return `${HEAD}\n${makers.join('\n')}\n${STATES}\n${JUDGE}`
}

const HEAD = `
local floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
local call, pack, fetch = redis.call, struct.pack, struct.unpack
local request = cjson.decode(ARGV[1])
local now = request.now
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local makers = {}`

const JUDGE = `
local LOOK, TAKE, GIVE_BACK = 0, 1, 2
-- what a character says is its code less this
local ZERO, ESCAPE = 33, 126
-- replies are whole numbers; longer than 285 years is never
local NEVER = 2 ^ 53

local homes, fields, nextField = {}, request.fields, 2
for h = 1, #fields do
  homes[h] = {
    young = KEYS[h * 2 - 1], old = KEYS[h * 2], from = nextField, size = fields[h], states = {}, owners = {}, idles = {}
  }
  nextField = nextField + fields[h]
  openHome(homes[h])
end

local function withPass(moves)
  if not moves.pass then
    function moves.pass(meter, state, now, cost)
      local delay = moves.delay(meter, state, now, cost)
      if delay == 0 then moves.take(meter, state, now, cost, 0) end
      return delay, moves.remaining(meter, state, now), moves.idleAt(meter, state)
    end
  end
  return moves
end

local rules, made, tenants = request.rules, {}, {}
for r = 1, #rules do
  local rule, h = rules[r], request.homes[r]
  local levels = rule.levels
  for l = 1, #levels do
    local level = levels[l]
    if not made[level.name] then made[level.name] = withPass(makers[level.name]()) end
    level.moves = made[level.name]
  end
  rule.home = homes[h]
  tenants[h] = (tenants[h] or 0) + 1
end
-- by the word of a charge, where a rule has one level, as most have, and its home for itself
local swift, swiftStates, swiftIdles = {}, {}, {}
for r = 1, #rules do
  local rule = rules[r]
  local level, home = rule.levels[1], rule.home
  local slots = level.slots
  if #rule.levels == 1 and slots > 0 and slots < MANY then
    rule.plain, rule.size, rule.bytes = formatOf(slots + 1), slots + 1, slots * 8 + 8
    if tenants[request.homes[r]] == 1 then
      loadStates(rule)
      level.delay, level.pass = level.moves.delay, level.moves.pass
      for word = r * 2 + ZERO, r * 2 + 1 + ZERO do
        swift[word], swiftStates[word], swiftIdles[word] = level, home.states, home.idles
      end
    end
  end
end

local function stateOf(rule, key)
  local home = rule.home
  if home.owner or home.owners[key] == rule then return home.states[key] end
  return loadState(rule, key)
end

local reply, n = { now }, 1

local function report(level, delay, remaining, idleAt)
  if delay > 0 then
    n = n + 1
    reply[n] = -min(delay, NEVER)
  end
  reply[n + 1] = remaining
  if idleAt <= now then
    reply[n + 2] = 0
  elseif level.held or idleAt - now > NEVER then
    reply[n + 2] = -1
  else
    reply[n + 2] = idleAt - now
  end
  n = n + 2
end

-- scratch space of one call: the states, the wait and the fit of each charge, and the delay of each level
local met, waits, fitting, delays = {}, {}, {}, {}

local function judge(calls, at, size, counting)
  local allowed, d = true, 0
  for c = 1, size do
    local from = at + c * 3 - 3
    local word = calls[from] - ZERO
    local mayWait = word % 2
    local rule = rules[(word - mayWait) / 2]
    local states, cost = stateOf(rule, calls[from + 1] - ZERO), calls[from + 2] - ZERO
    local levels, wait, fits = rule.levels, 0, true
    for l = 1, #levels do
      local level = levels[l]
      local delay = level.moves.delay(level, rule.plain and states or states[l], now, cost)
      d = d + 1
      delays[d] = delay
      if delay > 0 then
        if delay > wait then wait = delay end
        if mayWait == 0 or delay > level.patienceUs then fits = false end
      end
    end
    met[c], waits[c], fitting[c] = states, wait, fits
    if not fits and rule.enforced then allowed = false end
  end
  counting, d = counting and allowed, 0
  for c = 1, size do
    local from = at + c * 3 - 3
    local word, cost = calls[from] - ZERO, calls[from + 2] - ZERO
    local rule, states, last = rules[(word - word % 2) / 2], met[c], 0
    local levels, counts = rule.levels, counting and cost > 0 and fitting[c]
    for l = 1, #levels do
      local level, state = levels[l], rule.plain and states or states[l]
      local moves = level.moves
      if counts then moves.take(level, state, now, cost, waits[c]) end
      local idleAt = moves.idleAt(level, state)
      if idleAt > last then last = idleAt end
      d = d + 1
      report(level, delays[d], moves.remaining(level, state, now), idleAt)
    end
    if counts then rule.home.idles[calls[from + 1] - ZERO] = last end
  end
end

local function amend(calls, at, size, move)
  for from = at, at + size * 4 - 4, 4 do
    local rule, key = rules[floor((calls[from] - ZERO) / 2)], calls[from + 1] - ZERO
    local states, last = stateOf(rule, key), 0
    for l = 1, #rule.levels do
      local level, state = rule.levels[l], rule.plain and states or states[l]
      local moves = level.moves
      if moves[move] then moves[move](level, state, now, calls[from + 2] - ZERO, calls[from + 3] - ZERO) end
      last = max(last, moves.idleAt(level, state))
    end
    rule.home.idles[key] = last
  end
end

local function readCalls(text)
  local numbers, calls = request.numbers, nil
  if #text <= MANY then calls = { string.byte(text, 1, #text) } else calls = {} end
  for at = #calls + 1, #text do calls[at] = string.byte(text, at) end
  local next = 0
  if #numbers > 0 then
    for at = 1, #calls do
      if calls[at] == ESCAPE then
        next = next + 1
        calls[at] = numbers[next] + ZERO
      end
    end
  end
  return calls
end

local calls, at = readCalls(ARGV[2]), 1
local last = #calls
local ONE = TAKE + 4 + ZERO
while at <= last do
  local code, word = calls[at], calls[at + 1]
  local level, cost = code == ONE and swift[word], calls[at + 3] - ZERO
  if level and cost > 0 then
    local key = calls[at + 2] - ZERO
    local state = swiftStates[word][key]
    local delay, remaining, idleAt = level.pass(level, state, now, cost)
    if delay == 0 then
      swiftIdles[word][key] = idleAt
      reply[n + 1], reply[n + 2] = remaining, idleAt - now
      n = n + 2
    else
      if word % 2 ~= ZERO % 2 and delay <= level.patienceUs then
        local moves = level.moves
        moves.take(level, state, now, cost, delay)
        remaining, idleAt = moves.remaining(level, state, now), moves.idleAt(level, state)
        swiftIdles[word][key] = idleAt
      end
      report(level, delay, remaining, idleAt)
    end
    at = at + 4
  else
    code = code - ZERO
    local what = code % 4
    local size = (code - what) / 4
    if what > TAKE then
      amend(calls, at + 1, size, what == GIVE_BACK and 'giveBack' or 'renew')
      at = at + 1 + size * 4
    else
      -- where all charges are swift and pass at once, as most do
      local stop = at + size * 3
      local passes = what == TAKE
      for from = at + 1, stop, 3 do
        if not passes then break end
        level, cost = swift[calls[from]], calls[from + 2] - ZERO
        passes = level and cost > 0
          and level.delay(level, swiftStates[calls[from]][calls[from + 1] - ZERO], now, cost) == 0
      end
      if passes then
        for from = at + 1, stop, 3 do
          local key = calls[from + 1] - ZERO
          word = calls[from]
          level = swift[word]
          local _, remaining, idleAt = level.pass(level, swiftStates[word][key], now, calls[from + 2] - ZERO)
          swiftIdles[word][key] = idleAt
          reply[n + 1], reply[n + 2] = remaining, idleAt - now
          n = n + 2
        end
      else
        judge(calls, at + 1, size, what == TAKE)
      end
      at = stop + 1
    end
  end
end
for h = 1, #homes do saveHome(homes[h]) end
return reply
`
