import type { LuaAlgorithm } from '../../../algorithms/algorithm.ts'
import { luaAlgorithms as knownTwins } from '../../../algorithms/lua/lua-algorithms.ts'
import { FAN_OUT, HIGHEST_LEVEL } from '../layout.ts'
import { inlineConstants } from './lua-constants.ts'
import { SINGLE_CALL } from './single-call.ts'
import { slowPathScript } from './slow-path.ts'
import { STATES } from './states.ts'

/** A reply holds what remains and its reset in one number, where the one is below the first and the other below the second. */
export const REMAINING: number = 2 ** 26
export const RESETS: number = 2 ** 27

/** Every key lives on for so long after it has stopped to matter, as margin for clocks that step. */
const LINGER_MS = 1000
/** A home with more callers than this is spread, and one whose parts have more is spread further; to free so many takes Redis a millisecond at most. */
const HOME_CALLERS = 2000
const PART_CALLERS = 1000
/**
 * Redis frees what expires in its main thread, and looks for it ten times a second; so the hashes of a rule expire one after the
 * other, so far apart on average. Where they are many, that would take long, and they are smaller.
 */
const APART_MS = 400
const MANY_APART_MS = 100
const LONG_MS = 100_000
/** The hash of a home expires within so long, since those of other rules may expire with it. */
const HOME_WITHIN_MS = 500

/**
 * The one script that counts in Redis: every meter's moves, and a wrapper that gives them their inputs and does their
 * effects. A batch of calls is judged in order, each by all its charges at once, on states read once and written once.
 * It is begun anew for each batch, so what is seldom needed is only defined when it is.
 *
 *   KEYS     two per home, which is where the callers of a rule live: the young hash and the old one; then the parts of homes
 *            that are spread, two names each
 *   ARGV[1]  JSON: now (left out: the server's clock), lingerMs (left out: a second),
 *            homes: the fields of each home, one per key of the rule,
 *            layouts (left out: none is spread): for each home false, or { code, seed, parts: for each level where in KEYS the
 *              part of each field is }, perRule: how many homes a rule has (left out: 1),
 *            most: so many callers live in a hash before they are spread, for tests,
 *            forgets: versions of rules that are no longer used are forgotten at once, for tests,
 *            rules: [{ mark, since?, isWatching?, levels: [{ name, slots, shape, maxWaitUs?, needsRelease?, … the meter's numbers }] }],
 *            places: the home of each rule (left out: each has one for itself, in their order),
 *            calls: a character for each number, from '#' for 0 up to '}'; '~' stands for the next of `numbers`:
 *              to take or look: what + 8 * the number of charges, how many calls in a row ask alike,
 *                for each charge 2 * rule (+ 1 where the call may wait) and cost, and for each call the field of each charge
 *              to give back: what + 8 * the number of charges, and for each 2 * rule, field, cost, moment and wait
 *              to renew leases: the same with the least and the most places held
 *              to reset: the same, of which rule and field are read
 *              to catch up: rule and field, and for each level what is known to be used and what is missing
 *            born: when each home was born, as the process knows it, or 0; tell: the reply is to say so at its end,
 *            or keep: KEYS are a home and some of its parts, of so many; they live on for as long as the home matters
 *            or, for a call that comes alone, rules and lone: the field and 2 * cost (+ 1 where it may wait) of each charge
 *   reply    numbers: now, then for each call that asks and each level where the call cannot pass at once the delay,
 *            negative and less 1 (the least there is: never), and then remaining * RESETS + reset; or, where one of them
 *            is too large for that, -1, remaining and reset (-1 is never); for each level that catches up, what did not fit;
 *            or, where a home is spread otherwise than the request has it, -1 and the code and the seed of each home;
 *            or, where a home was born at another moment than the request has it, -2 and the moment of each, 0 if it is not there
 */
export function redisScript(luaAlgorithms: readonly LuaAlgorithm[]): string {
  const makers = luaAlgorithms.map(makerOf)
  const others = knownTwins.filter(({ name }) => !luaAlgorithms.some(lua => lua.name === name)).map(makerOf)
  const passes = luaAlgorithms.map(({ name, pass }) => {
    if (pass === undefined) return ''
    return `passes[${JSON.stringify(name)}] = function(meter, state, now, cost)${inlineConstants(pass)}\nend`
  })
  const moves = [...makers, ...passes].join('\n')
  return inlineConstants(`${HEAD}\n${moves}\n${SINGLE_CALL}\n${slowPathScript(others.join('\n'))}\n${STATES}\n${JUDGE}`)
}

function makerOf({ name, lua }: LuaAlgorithm): string {
  return `makers[${JSON.stringify(name)}] = function()${inlineConstants(lua)}\nend`
}

const HEAD = `
local floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
local call, pack, fetch = redis.call, struct.pack, struct.unpack
local SECOND = 1000000
-- Lua returns at most 8000 values at once
local MANY = 1000
-- Redis takes no expiry that is without end
local LONGEST = 1e16
-- what a character says is its code less this
local ZERO, ESCAPE = 35, 126
local TAKE, GIVE_BACK, RENEW, CATCH_UP = 1, 2, 3, 5
-- replies are whole numbers; longer than 285 years is never
local NEVER = 2 ^ 53
local REMAINING, RESETS = ${REMAINING}, ${RESETS}
local ABOUT, ABOUT_BYTES = '<dddddddddddd', 96
local PART_BYTES, FAN_OUT = 16, ${FAN_OUT}
-- opens no key, and puts back the one that is open
local NOBODY = 0

local request = cjson.decode(ARGV[1])
local homeCallers, partCallers = request.most or ${HOME_CALLERS}, request.most or ${PART_CALLERS}
local now = request.now
if not now then
  local time = call('TIME')
  now = time[1] * SECOND + time[2]
end
local reply, n = { now }, 1
local seldom
local makers, passes = {}, {}

local function formatOf(numbers)
  return '<' .. string.rep('d', numbers)
end

-- hashes that stop to matter together expire one after the other, in an order by their names
local function expire(key, lasts, parts)
  local place = tonumber(string.sub(redis.sha1hex(key), 1, 6), 16) / 2 ^ 24
  local hashes = (parts or 1) * (request.perRule or 1)
  local withinMs = max(${HOME_WITHIN_MS}, min(hashes * ${APART_MS}, ${LONG_MS}), hashes * ${MANY_APART_MS})
  local ttlMs = ceil((lasts - now) / 1000 + place * withinMs) + (request.lingerMs or ${LINGER_MS})
  call('PEXPIRE', key, string.format('%.0f', ttlMs))
end

-- spreads the callers of a home, from now on, over more parts than before
local function spreadFurther(young, about)
  local code, seed = fetch('<dd', about, ABOUT_BYTES - 15)
  local level = floor(code / 8) % 8
  if level == ${HIGHEST_LEVEL} then return end
  -- where a table is in memory cannot be told from outside
  if seed == 0 then seed = tonumber(string.sub(redis.sha1hex(tostring({}) .. young .. now), 1, 12), 16) end
  local layout = pack('<dd', code + 8 + 4096, seed)
  call('HSET', young, '@', string.sub(about, 1, ABOUT_BYTES - 16) .. layout .. string.sub(about, ABOUT_BYTES + 1))
end`

const JUDGE = `
local rules, places = request.rules, request.places
for r = 1, #rules do
  local home = homes[places and places[r] or r]
  local rule = rules[r]
  rule.home, home.rules = home, home.rules + 1
  if home.mark ~= rule.mark or not home.isSpelled then seldom().takeOver(home, rule) end
end
for r = 1, #rules do
  local rule = rules[r]
  local home = rule.home
  rule.version, rule.since, rule.at, rule.all = home.version, home.since, 0, rule.levels
  if home.mark ~= rule.mark then seldom().bind(home, rule) end
end
-- by the word of a charge
local chargers = {}
for r = 1, #rules do
  local rule = rules[r]
  local home, level = rule.home, rule.levels[1]
  if home.rules == 1 and home.mark == rule.mark and not rule.levels[2] and level.slots > 0 and level.slots < MANY then
    local charge = charger(rule)
    home.charge, chargers[r * 2], chargers[r * 2 + 1] = charge, charge, charge
  end
end

local text = request.calls
local calls = request.codes or (#text <= MANY and { string.byte(text, 1, #text) }) or seldom().codesOf(text)
if request.numbers then seldom().fillIn(calls, request.numbers) end

-- what the charges of a call have found, where they may have to be undone
local firsts, seconds = {}, {}
local at, last = 1, #calls
while at <= last do
  local code = calls[at] - ZERO
  local what = code % 8
  local size = (code - what) / 8
  if what == CATCH_UP then
    at = seldom().catchUp(rules, calls, at + 1, size)
  elseif what > TAKE then
    seldom().amend(rules, calls, at + 1, size, what == GIVE_BACK and 'giveBack' or what == RENEW and 'renew' or 'reset')
    at = at + 1 + size * 5
  else
    local words, costs, charges, isSwift = {}, {}, {}, what == TAKE
    for c = 1, size do
      local word, cost = calls[at + c * 2] - ZERO, calls[at + c * 2 + 1] - ZERO
      words[c], costs[c], charges[c] = word, cost, chargers[word]
      isSwift = isSwift and charges[c] and cost > 0
    end
    local keys = at + 2 + size * 2
    at = keys + (calls[at + 1] - ZERO) * size
    for from = keys, at - 1, size do
      -- as if all charges were to pass at once, as most do
      local taken, start = 0, n
      for c = 1, isSwift and size or 0 do
        local answer, first, second, remaining, reset = charges[c](calls[from + c - 1] - ZERO, costs[c], c < size)
        if not answer then break end
        taken = c
        if c < size then firsts[c], seconds[c] = first, second end
        n = n + 1
        reply[n] = answer
        if answer < 0 then
          reply[n + 1], reply[n + 2] = remaining, reset
          n = n + 2
        end
      end
      if taken < size then
        n = start
        if taken > 0 then seldom().undo(rules, words, calls, from, taken, firsts, seconds) end
        seldom().judge(rules, words, costs, calls, from, what == TAKE)
      end
    end
  end
end
for h = 1, #homes do saveHome(homes[h]) end
if request.tell then
  for h = 1, #homes do reply[n + h] = homes[h].about ~= '' and homes[h].born or 0 end
end
return reply
`
