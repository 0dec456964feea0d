import type { LuaAlgorithm } from '../../../algorithms/algorithm.ts'
import { luaAlgorithms as knownAlgorithms } from '../../../algorithms/lua/lua-algorithms.ts'
import { FAN_OUT, HIGHEST_LEVEL } from '../layout.ts'
import { inlineConstants } from './lua-constants.ts'
import { SINGLE_CALL } from './single-call.ts'
import { slowPathScript } from './slow-path.ts'
import { STATES } from './states.ts'

/** A reply packs `remaining` and `reset` into one number if they are below these bounds. */
export const REMAINING: number = 2 ** 26
export const RESETS: number = 2 ** 27

/** A key expires this long after it has stopped to matter, as a margin for clocks that step. */
const LINGER_MS = 1000
/** A partition with more callers than this is spread, and one whose shards have more is spread further; to free so many takes Redis a millisecond at most. */
const PARTITION_CALLERS = 2000
const SHARD_CALLERS = 1000
/**
 * Redis frees what expires in its main thread, and looks for it ten times a second; so the hashes of a rule expire one after the
 * other, so far apart on average. Where they are many, that would take long, and they are smaller.
 */
const APART_MS = 400
const MANY_APART_MS = 100
const LONG_MS = 100_000
/** The hash of a partition expires within so long, since those of other rules may expire with it. */
const PARTITION_WITHIN_MS = 500

/**
 * The one script that counts in Redis: the Lua of every meter, and a wrapper that reads and writes their states.
 * A batch of calls is decided in order, each by all its charges at once, on states read once and written once.
 * It runs from the start for each batch, so rarely needed functions are only defined when they are needed.
 *
 *   KEYS     two per partition, which is where the callers of a rule live: the current hash and the previous one; then the shards of partitions
 *            that are spread, two names each
 *   ARGV[1]  JSON: now (left out: the server's clock), lingerMs (left out: a second),
 *            partitions: the fields of each partition, one per key of the rule,
 *            layouts (left out: none is spread): for each partition false, or { code, seed, shards: for each level where in KEYS the
 *              shard of each field is }, perRule: how many partitions a rule has (left out: 1),
 *            most: so many callers live in a hash before they are spread, for tests,
 *            forgets: versions of rules that are no longer used are forgotten at once, for tests,
 *            rules: [{ mark, since?, shadow?, levels: [{ name, slots, shape, maxWaitUs?, needsRelease?, … the meter's numbers }] }],
 *            places: the partition of each rule (left out: each has one for itself, in their order),
 *            calls: a character for each number, from '#' for 0 up to '}'; '~' stands for the next of `numbers`:
 *              to take or look: what + 8 * the number of charges, how many calls in a row ask alike,
 *                for each charge 2 * rule (+ 1 where the call may wait) and cost, and for each call the field of each charge
 *              to refund: what + 8 * the number of charges, and for each 2 * rule, field, cost, moment and wait
 *              to renew leases: the same with the least and the most slots held
 *              to reset: the same, of which rule and field are read
 *              to catch up: rule and field, and for each level what is known to be used and what is missing
 *            createdAt: when each partition was created, as the process knows it, or 0; wantsCreationTimes: the reply is to list them at its end,
 *            or keep: KEYS are a partition and some of its shards, of so many; they live on for as long as the partition matters
 *            or, for a single call, rules and singleCall: the field and 2 * cost (+ 1 where it may wait) of each charge
 *   reply    numbers: now, then for each call that asks and each level where the call cannot pass at once the delay,
 *            negative and less 1 (the least there is: never), and then remaining * RESETS + reset; or, where one of them
 *            is too large for that, -1, remaining and reset (-1 is never); for each level that catches up, what did not fit;
 *            or, where a partition is spread otherwise than the request has it, -1 and the code and the seed of each partition;
 *            or, where a partition was created at another moment than the request has it, -2 and the moment of each, 0 if it is not there
 */
export function redisScript(luaAlgorithms: readonly LuaAlgorithm[]): string {
  const makers = luaAlgorithms.map(makerOf)
  const others = knownAlgorithms.filter(({ name }) => !luaAlgorithms.some(lua => lua.name === name)).map(makerOf)
  const passes = luaAlgorithms.map(({ name, pass }) => {
    if (pass === undefined) return ''
    return `passes[${JSON.stringify(name)}] = function(meter, state, now, cost)${inlineConstants(pass)}\nend`
  })
  const moves = [...makers, ...passes].join('\n')
  return inlineConstants(
    `${HEAD}\n${moves}\n${SINGLE_CALL}\n${slowPathScript(others.join('\n'))}\n${STATES}\n${DECIDE}`,
  )
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
local TAKE, REFUND, RENEW, CATCH_UP = 1, 2, 3, 5
-- replies are whole numbers; longer than 285 years is never
local NEVER = 2 ^ 53
local REMAINING, RESETS = ${REMAINING}, ${RESETS}
local ABOUT, ABOUT_BYTES = '<dddddddddddd', 96
local SHARD_BYTES, FAN_OUT = 16, ${FAN_OUT}
-- opens no key, and stores the one that is open
local NO_KEY = 0

local request = cjson.decode(ARGV[1])
local partitionCallers, shardCallers = request.most or ${PARTITION_CALLERS}, request.most or ${SHARD_CALLERS}
local now = request.now
if not now then
  local time = call('TIME')
  now = time[1] * SECOND + time[2]
end
local reply, n = { now }, 1
local slow
local makers, passes = {}, {}

local function formatOf(numbers)
  return '<' .. string.rep('d', numbers)
end

-- hashes that stop to matter together expire one after the other, in an order by their names
local function expire(key, lasts, shards)
  local place = tonumber(string.sub(redis.sha1hex(key), 1, 6), 16) / 2 ^ 24
  local hashes = (shards or 1) * (request.perRule or 1)
  local withinMs = max(${PARTITION_WITHIN_MS}, min(hashes * ${APART_MS}, ${LONG_MS}), hashes * ${MANY_APART_MS})
  local ttlMs = ceil((lasts - now) / 1000 + place * withinMs) + (request.lingerMs or ${LINGER_MS})
  call('PEXPIRE', key, string.format('%.0f', ttlMs))
end

-- spreads the callers of a partition, from now on, over more shards than before
local function spreadFurther(current, about)
  local code, seed = fetch('<dd', about, ABOUT_BYTES - 15)
  local level = floor(code / 8) % 8
  if level == ${HIGHEST_LEVEL} then return end
  -- the address of a table in memory is not known to callers
  if seed == 0 then seed = tonumber(string.sub(redis.sha1hex(tostring({}) .. current .. now), 1, 12), 16) end
  local layout = pack('<dd', code + 8 + 4096, seed)
  call('HSET', current, '@', string.sub(about, 1, ABOUT_BYTES - 16) .. layout .. string.sub(about, ABOUT_BYTES + 1))
end`

const DECIDE = `
local rules, places = request.rules, request.places
for r = 1, #rules do
  local partition = partitions[places and places[r] or r]
  local rule = rules[r]
  rule.partition, partition.rules = partition, partition.rules + 1
  if partition.mark ~= rule.mark or not partition.isSpelled then slow().takeOver(partition, rule) end
end
for r = 1, #rules do
  local rule = rules[r]
  local partition = rule.partition
  rule.version, rule.since, rule.at, rule.all = partition.version, partition.since, 0, rule.levels
  if partition.mark ~= rule.mark then slow().bind(partition, rule) end
end
-- by the rule code of a charge
local chargers = {}
for r = 1, #rules do
  local rule = rules[r]
  local partition, level = rule.partition, rule.levels[1]
  if partition.rules == 1 and partition.mark == rule.mark and not rule.levels[2] and level.slots > 0 and level.slots < MANY then
    local charge = charger(rule)
    partition.charge, chargers[r * 2], chargers[r * 2 + 1] = charge, charge, charge
  end
end

local text = request.calls
local calls = request.codes or (#text <= MANY and { string.byte(text, 1, #text) }) or slow().codesOf(text)
if request.numbers then slow().fillIn(calls, request.numbers) end

-- the states before the charges of a call, in case the charges are undone
local firsts, seconds = {}, {}
local at, last = 1, #calls
while at <= last do
  local code = calls[at] - ZERO
  local what = code % 8
  local size = (code - what) / 8
  if what == CATCH_UP then
    at = slow().catchUp(rules, calls, at + 1, size)
  elseif what > TAKE then
    slow().amend(rules, calls, at + 1, size, what == REFUND and 'refund' or what == RENEW and 'renew' or 'reset')
    at = at + 1 + size * 5
  else
    local ruleCodes, costs, charges, isSwift = {}, {}, {}, what == TAKE
    for c = 1, size do
      local ruleCode, cost = calls[at + c * 2] - ZERO, calls[at + c * 2 + 1] - ZERO
      ruleCodes[c], costs[c], charges[c] = ruleCode, cost, chargers[ruleCode]
      isSwift = isSwift and charges[c] and cost > 0
    end
    local keys = at + 2 + size * 2
    at = keys + (calls[at + 1] - ZERO) * size
    for from = keys, at - 1, size do
      -- fast path: assume that all charges pass at once, as most do
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
        if taken > 0 then slow().undo(rules, ruleCodes, calls, from, taken, firsts, seconds) end
        slow().decide(rules, ruleCodes, costs, calls, from, what == TAKE)
      end
    end
  end
end
for h = 1, #partitions do savePartition(partitions[h]) end
if request.wantsCreationTimes then
  for h = 1, #partitions do reply[n + h] = partitions[h].about ~= '' and partitions[h].createdAt or 0 end
end
return reply
`
