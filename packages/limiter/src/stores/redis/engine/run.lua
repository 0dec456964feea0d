-- One run of the engine, for a batch of requests.
--
--   keys     the ledger of each charge, in the order of the calls, with the key of the process behind that of a ledger whose permits
--            are leased; and at last the key whose loss shows that counts were lost
--   args[1]  numbers: for how many milliseconds keys are kept when they are idle; 1 if limits that are used no longer are forgotten at
--            once, for tests, and 2 if the engine remembers no limits, so that ledgers have to; how many rules there are; of each the id, when the rule was
--            changed, if that is known, or -1, and since when its limit counts all calls; and then rows, each with how many numbers follow:
--              what it is, and how many calls in a row are alike; and then
--                to take or look: for each charge 2 * rule (+ 1 if the call may wait) and the cost
--                to reserve: an id, and for each charge 2 * rule (+ 1 if the call may wait), the cost and for how long
--                for all others 2 * rule, and then
--                  to refund: the cost, the moment and the wait; to renew slots: the least and the most that are held, 0
--                  to settle: see settle in settlements.lua; to report and lease permits: see lease in leases.lua
--                  to catch up: for each level what is known to be used, what is missing, the period, and at how many moments
--                    to come how much of both still counts
--   args[2]  when the store was created, as the process knows it, or 0: the reply then ends with that
--   args[3]  the moment, for tests; else empty
--   args[4]  the number of the process, under which it holds slots
--   args[5]… descriptions of rules, if they were asked for: { id, mark, shadow?, isEager?, levels, limits? } as JSON
--   reply    numbers: now, then for each call that asks and each level the delay if the call cannot pass at once, negative and
--            less 1 (the least there is: never), and then remaining * RESETS + reset; or, if one of them is too large for
--            that, -1, remaining and reset (-1 is never); for each level that catches up, what did not fit;
--            for permits that are leased, see lease in leases.lua;
--            or, if the store was created at another moment than the process knows, -2 and the moment, 0 if it is not there;
--            or, if the descriptions of rules are not known, -3 and the places of these rules. In both cases nothing was counted.

-- Requests that come often are read once; those are short.
local LONGEST_REQUEST = 400
local requests = memoryOf(500)

-- The numbers of a request, and its rows.
local function readRequest(text)
  local known = recall(requests, text)
  if known then return known end
  local numbers = {}
  for word in string.gmatch(text, '%S+') do numbers[#numbers + 1] = tonumber(word) end
  local found = { lingerMs = numbers[1], rules = numbers[3], ids = numbers, rows = {} }
  found.forgets, found.keepsLevels = numbers[2] % 2 == 1, numbers[2] >= 2
  local at = 4 + 3 * numbers[3]
  while numbers[at] do
    local row = {}
    for i = 1, numbers[at] do row[i] = numbers[at + i] end
    found.rows[#found.rows + 1] = row
    at = at + 1 + #row
  end
  if #text <= LONGEST_REQUEST then remember(requests, text, found) end
  return found
end

-- The ledgers of the run, by their keys and in their order; and how many keys were used.
local ledgers, opened, openedCount, used

function nextLedger(rule)
  used = used + 1
  local key = keys[used]
  local ledger = ledgers[key]
  if not ledger then
    ledger = readLedger(key, raws[used], rule)
    ledger.rule, ledger.raw = rule, raws[used]
    openedCount = openedCount + 1
    ledgers[key], opened[openedCount] = ledger, ledger
  end
  return ledger
end

local function serve(row)
  local what = row[1]
  if what == TAKE or what == LOOK or what == RESERVE then return decide(row, what ~= LOOK) end
  local rule = rules[row[3] / 2]
  local ledger = nextLedger(rule)
  if what == REFUND then
    amend(ledger, rule, row, 'refund')
  elseif what == RENEW then
    use(ledger, rule, ownEntry(ledger, rule))
    amend(ledger, rule, row, 'renew')
  elseif what == CATCH_UP then
    catchUp(ledger, rule, row)
  elseif what == SETTLE then
    settle(ledger, rule, row)
  elseif what == RESET then
    reset(ledger, rule)
  else
    used = used + 1
    lease(ledger, rule, row, keys[used], raws[used])
  end
end

-- Serves all rows; nothing is written to ledgers before.
local function serveAll(createdAt)
  -- the constructor makes room for the answer to a single call
  reply, n = { now, nil, nil, nil }, 1
  ledgers, opened, openedCount, used = {}, {}, 0, 0
  local rows = request.rows
  for r = 1, #rows do serve(rows[r]) end
  if createdAt == 0 then n = n + 1 end
end

-- Asks a ledger what calls ask; raises an error if its numbers are not those of its limit.
local function probe(key, raw, rule)
  local ledger = readLedger(key, raw, rule)
  for _, entry in ipairs(ledger.entries) do
    for l, level in ipairs(entry.limit.levels) do
      local moves, state = entry.limit.moves[l], entry.states[l]
      moves.delay(level, state, now, 1)
      moves.refund(level, state, now, 1, now, -1)
      moves.take(level, state, now, 1, 0)
    end
  end
  idleAtOf(ledger)
end

-- A ledger that another program has written to counts as nothing, so that it does not fail the calls of others.
local function forgetBroken()
  local isFound = false
  for o = 1, openedCount do
    local ledger = opened[o]
    if ledger.raw and not pcall(probe, ledger.key, ledger.raw, ledger.rule) then
      for k = 1, #keys do
        if keys[k] == ledger.key then raws[k], isFound = false, true end
      end
    end
  end
  return isFound
end

local function run(givenKeys, givenArgs)
  if not call then bindNames() end
  keys, args = givenKeys, givenArgs
  request = readRequest(args[1])
  now = tonumber(args[3])
  if not now then
    local time = call('TIME')
    now = time[1] * SECOND + time[2]
  end
  local unknown = readRules(request.ids, request.rules)
  if unknown then return unknown end
  raws = call('MGET', unpack(keys))
  local last = #keys
  readEra(raws[last])
  local createdAt = tonumber(args[2])
  if createdAt ~= 0 and createdAt ~= era.createdAt then return { -2, era.createdAt } end
  local isServed, fault = pcall(serveAll, createdAt)
  if not isServed then
    if not forgetBroken() then error(fault) end
    serveAll(createdAt)
  end
  local lasts, isSaved = 0, era.isChanged
  for o = 1, openedCount do
    local ledger = opened[o]
    if ledger.isChanged then lasts, isSaved = max(lasts, saveLedger(ledger)), true end
  end
  if isSaved then saveEra(keys[last], lasts) end
  if createdAt == 0 then reply[n] = era.createdAt end
  return reply
end
