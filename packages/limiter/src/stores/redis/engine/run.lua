-- One run of the engine, for a batch of requests.
--
--   keys     two per partition: the current hash and the previous one; then the shards of partitions that are spread, two names each
--   args[1]  JSON:
--              rules: how many rules follow; places: the partition of each (left out: each has one for itself, in their order)
--              calls: rows of numbers, each with what it is and how many calls in a row are alike, and then
--                to take or look: for each charge 2 * rule (+ 1 if the call may wait) and the cost
--                to refund: 2 * rule, the cost, the moment and the wait; to renew leases: 2 * rule, the least and the most slots
--                  held; to reset: 2 * rule
--                to catch up: 2 * rule, and for each level what is known to be used and what is missing
--              same: a partition has a caller more than once
--              createdAt: when each partition was created, as the process knows it, or 0; wantsCreationTimes: the reply lists them
--              layouts (left out: none is spread): for each partition false, or { code, seed, shards: for each level where in keys
--                the shard of each of its callers is, in the order of the calls }; perRule: how many partitions a rule has
--              now (left out: the clock of the server), lingerMs, most (callers in a hash), forgets: for tests
--            or keep: the keys are a partition and some of its shards, of so many; they live on for as long as the partition matters
--   args[2]… each rule: { mark, since?, shadow?, levels: [{ name, slots, shape, coreSlots?, maxWaitUs?, needsRelease?, … numbers }] }
--            and then the caller of each charge, in the order of the calls
--   reply    numbers: now, then for each call that asks and each level the delay if the call cannot pass at once, negative and
--            less 1 (the least there is: never), and then remaining * RESETS + reset; or, if one of them is too large for
--            that, -1, remaining and reset (-1 is never); for each level that catches up, what did not fit;
--            or, if a partition is spread otherwise than the request has it, -1 and the code and the seed of each partition;
--            or, if a partition was created at another moment than the request has it, -2 and the moment of each, 0 if it is not
--            there. In both cases nothing was counted.

-- The rules and the partitions of the run. Their tables are used again by the next run, since garbage costs Redis more than what
-- a run computes.
local MAX_KEPT = 64
local rules, partitions = {}, {}

local function preparePartition(h)
  local partition = partitions[h]
  if not partition then
    partition = {}
    partitions[h] = partition
  end
  partition.current, partition.previous = keys[h * 2 - 1], keys[h * 2]
  partition.layout = request.layouts and request.layouts[h]
  -- its callers are `size` of the fields, behind `offset`; so many of them were served
  partition.fields, partition.offset, partition.size, partition.served = false, 0, 0, 0
  partition.states, partition.changes, partition.resets, partition.last = false, 0, false, 0
  partition.first, partition.idleAts = false, {}
  partition.isSpread, partition.isPreviousKnown, partition.isKnown, partition.isSpelled = false, false, true, true
  partition.isChanged, partition.lists, partition.spelling, partition.untils = false, false, false, false
  partition.seen, partition.places = false, false
  partition.changed = partition.changed or {}
end

-- Reads the rules of the request; returns how many partitions they have.
local function readRules(args)
  local count = 0
  for r = 1, request.rules do
    local spec, h = decode(args[r + 1]), request.places and request.places[r] or r
    if not spec.moves then spec.moves, spec.widths = movesOfAll(spec.levels), widthsOf(spec.levels) end
    if h > count then
      preparePartition(h)
      count = h
    end
    local rule = rules[r] or {}
    rules[r] = rule
    rule.mark, rule.since, rule.shadow, rule.partition = spec.mark, spec.since or false, spec.shadow, partitions[h]
    rule.levels, rule.moves = spec.levels, spec.moves
    -- where its levels are among those of all versions
    rule.at, rule.all, rule.allMoves, rule.widths, rule.slowest = 0, spec.levels, spec.moves, spec.widths, false
  end
  return count
end

-- Gives each partition its callers.
local function readCallers(args, count)
  local at = request.rules + 1
  if count == 1 then
    local partition = partitions[1]
    partition.fields, partition.offset, partition.size = args, at, #args - at
    return
  end
  for h = 1, count do partitions[h].fields = {} end
  for _, row in ipairs(request.calls) do
    local lastCode = row[1] <= TAKE and #row or 3
    for _ = 1, row[2] do
      for code = 3, lastCode, 2 do
        local partition = rules[(row[code] - row[code] % 2) / 2].partition
        at = at + 1
        partition.size = partition.size + 1
        partition.fields[partition.size] = args[at]
      end
    end
  end
end

-- Opens all partitions; returns a reply if the request and Redis do not agree on them.
local function openPartitions(count)
  local isStale, isLost, createdAt, reason = false, false, request.createdAt, nil
  for h = 1, count do
    local partition = partitions[h]
    isStale = openPartition(partition) or isStale
    if createdAt[h] ~= 0 and createdAt[h] ~= partition.createdAt then isLost = true end
    if partition.layout and not isStale then readShards(partition) end
  end
  if isLost then
    reason = { -2 }
    for h = 1, count do reason[h + 1] = partitions[h].about ~= '' and partitions[h].createdAt or 0 end
  elseif isStale then
    reason = { -1 }
    for h = 1, count do reason[h * 2], reason[h * 2 + 1] = partitions[h].code % 4096, partitions[h].seed end
  end
  return reason
end

local function serve(row)
  local what = row[1]
  if what <= TAKE then
    local size, isCounting = readCharges(rules, row), what == TAKE
    for _ = 1, row[2] do decide(size, isCounting) end
    return
  end
  local rule = rules[row[3] / 2]
  if what == CATCH_UP then
    catchUp(rule, row)
  elseif what == REFUND or what == RENEW then
    amend(rule, row, what == REFUND and 'refund' or 'renew')
  else
    reset(rule)
  end
end

local function run(givenKeys, args)
  if not call then bindNames() end
  keys, request = givenKeys, decode(args[1])
  now = request.now
  if not now then
    local time = call('TIME')
    now = time[1] * SECOND + time[2]
  end
  -- the constructor makes room for the answer to a single call
  reply, n = { now, nil, nil, nil }, 1
  if request.keep then
    keepShards(request.keep)
    return reply
  end
  if #rules > MAX_KEPT then rules, partitions = {}, {} end
  local count = readRules(args)
  readCallers(args, count)
  local reason = openPartitions(count)
  if reason then return reason end
  for r = 1, request.rules do
    local rule = rules[r]
    local partition = rule.partition
    if partition.mark ~= rule.mark or not partition.isSpelled then takeOver(partition, rule) end
  end
  for r = 1, request.rules do bindRule(rules[r]) end
  local calls = request.calls
  for c = 1, #calls do serve(calls[c]) end
  for h = 1, count do savePartition(partitions[h]) end
  if request.wantsCreationTimes then
    for h = 1, count do reply[n + h] = partitions[h].about ~= '' and partitions[h].createdAt or 0 end
  end
  return reply
end
