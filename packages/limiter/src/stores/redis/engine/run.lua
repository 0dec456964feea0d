-- One run of the engine, for a batch of requests.
--
--   keys     two per partition: the current hash and the previous one; then the shards of partitions that are spread, two names each
--   args[1]  JSON:
--              sizes: how many callers each partition has
--              rules: how many rules follow; places: the partition of each (left out: each has one for itself, in their order)
--              calls: rows of numbers, each with what it is and how many calls in a row are alike, and then
--                to take or look: for each charge 2 * rule (+ 1 if the call may wait) and the cost
--                to refund: 2 * rule, the cost, the moment and the wait; to renew leases: 2 * rule, the least and the most slots
--                  held; to reset: 2 * rule
--                to reserve: an id, and for each charge 2 * rule (+ 1 if the call may wait), the cost and for how long; to settle: see
--                  settle in decide.lua
--                to report and reserve permits: see lease in decide.lua; holders: how many of the last keys are those of holders
--                to catch up: 2 * rule, and for each level what is known to be used, what is missing, the period, and at how many moments
--                  to come how much of both still counts
--              same: a partition has a caller more than once
--              createdAt: when each partition was created, as the process knows it, or 0; wantsCreationTimes: the reply lists them
--              layouts (left out: none is spread): for each partition false, or { code, seed, shards: for each level where in keys
--                the shard of each of its callers is }; perRule: how many partitions a rule has
--              now (left out: the clock of the server), lingerMs, most (callers in a hash), forgets: for tests
--            or keep: the keys are a partition and some of its shards, of so many; they live on for as long as the partition matters
--   args[2]… each rule: { mark, since?, shadow?, levels: [{ name, slots, shape, coreSlots?, maxWaitUs?, needsRelease?, … numbers }] }
--            and then the callers of each partition, each of them one for each charge, in the order of the calls
--   reply    numbers: now, then for each call that asks and each level the delay if the call cannot pass at once, negative and
--            less 1 (the least there is: never), and then remaining * RESETS + reset; or, if one of them is too large for
--            that, -1, remaining and reset (-1 is never); for each level that catches up, what did not fit;
--            for permits that are reserved, see lease in decide.lua;
--            or, if a partition is spread otherwise than the request has it, -1 and the code and the seed of each partition;
--            or, if a partition was created at another moment than the request has it, -2 and the moment of each, 0 if it is not
--            there. In both cases nothing was counted.

-- The rules and the partitions of the run; their lists are used again by the next run.
local rules, partitions = {}, {}

-- Opens all partitions; returns a reply if the request and Redis do not agree on them.
local function openPartitions(sizes)
  local isStale, isLost, createdAt, layouts, reason = false, false, request.createdAt, request.layouts, nil
  local offset = request.rules + 1
  for h = 1, #sizes do
    local partition, layout = partitionOf(keys[h * 2 - 1], keys[h * 2]), layouts and layouts[h]
    partitions[h] = partition
    isStale = openPartition(partition, layout, offset, sizes[h]) or isStale
    offset = offset + sizes[h]
    if createdAt[h] ~= 0 and createdAt[h] ~= partition.createdAt then isLost = true end
    if layout and not isStale then readShards(partition) end
  end
  if isLost then
    reason = { -2 }
    for h = 1, #sizes do reason[h + 1] = partitions[h].about ~= '' and partitions[h].createdAt or 0 end
  elseif isStale then
    reason = { -1 }
    for h = 1, #sizes do reason[h * 2], reason[h * 2 + 1] = partitions[h].code % 4096, partitions[h].seed end
  end
  return reason
end

-- Reads the rules of the request, and gives each its partition. The rule that a partition had in the run before is as it was.
local function readRules()
  local places = request.places
  for r = 1, request.rules do
    local spec, partition = decode(args[r + 1]), partitions[places and places[r] or r]
    local rule = partition.rule
    if not (rule and rule.spec == spec) then
      if not spec.moves then spec.moves, spec.widths = movesOfAll(spec.levels), widthsOf(spec.levels) end
      rule = { spec = spec, mark = spec.mark, since = spec.since or false, shadow = spec.shadow, partition = partition }
      rule.levels, rule.moves = spec.levels, spec.moves
      -- where its levels are among those of all versions
      rule.at, rule.all, rule.allMoves, rule.widths, rule.hasOthers, rule.slowest = 0, spec.levels, spec.moves, spec.widths, false, false
      partition.rule = rule
    end
    rules[r] = rule
    if partition.mark ~= rule.mark or not partition.isSpelled then takeOver(partition, rule) end
  end
  for r = 1, request.rules do bindRule(rules[r]) end
end

local function serve(row)
  local what = row[1]
  if what <= TAKE or what == RESERVE then
    n = decide(rules, row, what > 0)
    return
  end
  local rule = rules[row[3] / 2]
  if what == CATCH_UP then
    catchUp(rule, row)
  elseif what == LEASE then
    lease(rule, row)
  elseif what == SETTLE then
    settle(rule, row)
  elseif what == REFUND or what == RENEW then
    amend(rule, row, what == REFUND and 'refund' or 'renew')
  else
    reset(rule)
  end
end

local function run(givenKeys, givenArgs)
  if not call then bindNames() end
  keys, args, request = givenKeys, givenArgs, decode(givenArgs[1])
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
  local sizes, calls = request.sizes, request.calls
  local reason = openPartitions(sizes)
  if reason then return reason end
  readRules()
  for c = 1, #calls do serve(calls[c]) end
  for h = 1, #sizes do savePartition(partitions[h]) end
  if request.wantsCreationTimes then
    for h = 1, #sizes do reply[n + h] = partitions[h].about ~= '' and partitions[h].createdAt or 0 end
  end
  return reply
end
