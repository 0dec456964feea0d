-- The entries of a ledger: the limits that a caller has had, each with numbers of its own; the one that was used last comes first.
--
-- A call is judged by the entry of its own limit, and recorded in all others. So the entry that admits a call knows all calls of the
-- caller, whichever limit admitted them. A rule that is changed gives its callers another limit: a version of a rule and a plan of a caller
-- are one thing here.
--
-- A longer window of a plan may admit more than a shorter one has room for. That is paid at the rate of the shorter one: until then (`owesUntil`)
-- that admits only what another plan of the caller would admit, too. So no caller gets more than the largest of its limits in any
-- interval, however often they alternate.

local MOST_PARTS = 100

local function entryIdleAt(entry)
  local idleAt, limit = 0, entry.limit
  for l, level in ipairs(limit.levels) do idleAt = max(idleAt, limit.moves[l].idleAt(level, entry.states[l])) end
  return idleAt
end

-- The level whose counts a new one continues: that of its period, else the next longer one, else the longest. Nothing if the limit
-- counts by another algorithm.
local function sourceLevelIn(limit, level, l)
  local longer, longest
  for _, other in ipairs(limit.levels) do
    if other.name ~= level.name or #scaleOf(other) ~= #scaleOf(level) then return nil end
  end
  local period, same = periodOf(level), limit.levels[l]
  if not period then return same and l end
  if same and periodOf(same) == period then return l end
  for p, other in ipairs(limit.levels) do
    local length = periodOf(other)
    if length >= period and (not longer or length < periodOf(limit.levels[longer])) then longer = p end
    if not longest or length > periodOf(limit.levels[longest]) then longest = p end
  end
  return longer or longest
end

-- The entry whose counts a new window continues, and its level: of the limit that was used last; unless that is a window which has
-- forgotten what the window of another limit, of a longer period, still knows.
local function sourceOf(entries, level, l)
  local found, foundAt
  for _, entry in ipairs(entries) do
    local place = sourceLevelIn(entry.limit, level, l)
    if place then
      local length, known = periodOf(entry.limit.levels[place]), found and periodOf(found.limit.levels[foundAt]) or 0
      local period = periodOf(level)
      local isBetter = known < period and length > known or (known >= period and length >= period and length < known)
      if not found or (found ~= entries[1] or known < period) and isBetter then found, foundAt = entry, place end
    end
  end
  return found, foundAt
end

local function isSameScale(one, other)
  local scale, otherScale = scaleOf(one), scaleOf(other)
  if one.slots ~= other.slots then return false end
  for i = 1, #scale do
    if scale[i] ~= otherScale[i] then return false end
  end
  return true
end

-- When a rule was changed, if a process knows that; else now.
local function changedAt(rule)
  return not rule.stated and rule.since >= 0 and min(now, rule.since) or now
end

-- What a level makes of the state of another limit's; nothing if that counts nothing, or nothing that can be continued.
local function continued(limit, l, entry, place, at)
  local level, state, source = limit.levels[l], entry.states[place], entry.limit.levels[place]
  if not isUsed(state) then return nil end
  local copy = copyState(state)
  if isSameScale(level, source) then return copy end
  local inherit = limit.moves[l].inherit
  copy.n = copy.n or #state
  return inherit and inherit(level, copy, scaleOf(source), at)
end

-- An entry for a limit that the caller has not had yet, which continues the counts of its other limits: as of the moment at which the
-- rule was changed, if a process knows that. A bucket continues the fullest: none of them may be refilled by a change.
local function joiningOf(limit, at, entries)
  local joining = { limit = limit, joinedAt = entries[1] and at or -1, staysUntil = 0, owesUntil = 0, states = {} }
  for l, level in ipairs(limit.levels) do
    local found
    if level.windowUs then
      local entry, place = sourceOf(entries, level, l)
      found = entry and continued(limit, l, entry, place, at)
    else
      local idleAt = limit.moves[l].idleAt
      for _, entry in ipairs(entries) do
        local place = sourceLevelIn(entry.limit, level, l)
        local state = place and continued(limit, l, entry, place, at)
        if state and (not found or idleAt(level, state) > idleAt(level, found)) then found = state end
      end
    end
    joining.states[l] = found or blank(level.slots)
  end
  return joining
end

-- A ledger whose limits all are idle is as good as new.
local function dropIdle(ledger)
  for _, entry in ipairs(ledger.entries) do
    if entryIdleAt(entry) > now then return end
  end
  ledger.entries = {}
end

local function longestPeriod(limit)
  local longest = 0
  for _, level in ipairs(limit.levels) do longest = max(longest, periodOf(level) or 0) end
  return longest
end

-- True if another one of some limits knows as much as a limit does.
local function isKnownTo(entries, entry)
  local period = longestPeriod(entry.limit)
  for _, other in ipairs(entries) do
    if other ~= entry and longestPeriod(other.limit) >= period then return true end
  end
  return false
end

-- Takes note of how long an entry stays that is not used any more. A limit that has changed may be changed back, and processes without
-- the change go on with the old one, so it stays for a while; or, if no other limit counts over as long a period, for its own.
local function stays(rule, entries, entry)
  local isShort = not rule.stated and isKnownTo(entries, entry)
  return max(KEPT_US, isShort and 0 or longestPeriod(entry.limit))
end

local function leave(rule, entries, entry, at)
  entry.staysUntil = at + stays(rule, entries, entry)
end

-- Versions of a rule that are not used any more leave. A version that other processes use stays, also if it has refused all calls of the
-- caller.
local function dropOld(ledger, rule)
  local entries = ledger.entries
  for e = #entries, 2, -1 do
    local entry = entries[e]
    local staysUntil = entry.staysUntil
    for _, version in ipairs(rule.since < 0 and rule.versions or {}) do
      if version.limit.mark == entry.limit.mark then
        staysUntil = max(staysUntil, min(now, version.usedAt) + stays(rule, entries, entry))
      end
    end
    if staysUntil <= now then table.remove(entries, e) end
  end
end


-- The entry that a rule's calls are judged by. It is not one of the ledger's before a call was counted by it.
local function ownEntry(ledger, rule)
  local limit = rule.limit
  local first = ledger.entries[1]
  if first and rule.stated and (ledger.entries[2] or first.limit.mark ~= limit.mark) then dropIdle(ledger) end
  if not rule.stated and ledger.entries[2] then dropOld(ledger, rule) end
  for _, entry in ipairs(ledger.entries) do
    if entry.limit.mark == limit.mark then
      entry.limit, entry.isOutside = limit, rule.isOutside
      return entry
    end
  end
  if not ledger.joining or ledger.joining.limit.mark ~= limit.mark then
    ledger.joining = joiningOf(limit, changedAt(rule), ledger.entries)
  end
  ledger.joining.isOutside = rule.isOutside
  return ledger.joining
end

-- Puts an entry in front of the others. Those of limits that the rule does not state leave; of the versions of a rule, some stay.
local function join(ledger, rule, own)
  local after, first = { own }, ledger.entries[1]
  for _, entry in ipairs(ledger.entries) do
    if not request.forgets and isStated(rule, entry.limit.mark) then after[#after + 1] = entry end
  end
  if first then leave(rule, after, first, changedAt(rule)) end
  while not rule.stated and #after > MOST_VERSIONS do
    local least = 2
    for e = 3, #after do
      if after[e].staysUntil < after[least].staysUntil then least = e end
    end
    table.remove(after, least)
  end
  ledger.entries, ledger.joining, ledger.isChanged, ledger.isFresh = after, false, true, not first
end

-- Lets an entry be the one that was used last, and joins it first if it is new.
local function use(ledger, rule, own)
  if ledger.joining == own then return join(ledger, rule, own) end
  local entries = ledger.entries
  if entries[1] == own then return end
  leave(rule, entries, entries[1], changedAt(rule))
  for e = 2, #entries do
    if entries[e] == own then
      table.remove(entries, e)
      table.insert(entries, 1, own)
      return
    end
  end
end

-- Lets a caller be counted from its first call on by all limits that cannot continue what another one has counted without a loss, and by
-- all versions of a rule that are in use.
local function joinOthers(ledger, rule, own)
  local entries = ledger.entries
  if rule.stated then
    for _, limit in ipairs(not entries[2] and isStated(rule, own.limit.mark) and rule.stated or {}) do
      if limit.mark ~= own.limit.mark then
        local entry = joiningOf(limit, now, { own })
        entry.joinedAt = own.joinedAt
        entries[#entries + 1] = entry
        leave(rule, entries, entry, now)
      end
    end
    return
  end
  for _, version in ipairs(request.forgets and {} or rule.versions) do
    local isKnown = version == rule.version or #entries == MOST_VERSIONS
    for e = 1, #entries do isKnown = isKnown or entries[e].limit.mark == version.limit.mark end
    if not isKnown then
      local entry = joiningOf(version.limit, now, entries)
      if ledger.isFresh then entry.joinedAt = -1 end
      leave(rule, entries, entry, min(now, version.usedAt))
      if entry.staysUntil > now then entries[#entries + 1] = entry end
    end
  end
end

-- What is taken back after the rule was changed is taken back from the changed limit, too.
local function continueChanged(ledger, rule)
  if rule.since >= 0 and not rule.stated and ledger.entries[1] then
    local own = ownEntry(ledger, rule)
    if ledger.joining == own then join(ledger, rule, own) end
  end
end

-- Counts in a level what another limit has admitted. A level that admits more in the long run counts ahead what does not fit: a
-- burst of the slower limit is not to come on top of what the faster one admits.
local function recordPart(level, moves, state, carries, cost, wait)
  if moves.record then return moves.record(level, state, now, cost, wait, carries) end
  local fitsIn = carries and moves.delay(level, state, now, cost) or 0
  moves.take(level, state, now, cost, fitsIn < huge and max(wait, fitsIn) or wait)
end

-- True if a level admits more in the long run than a limit.
local function isFaster(level, moves, limit)
  return moves.perUs and moves.perUs(level) > limit.slowest or false
end

-- How long a level takes to admit a cost in the long run.
local function payUs(level, moves, cost)
  return ceil(cost / moves.perUs(level))
end

-- Notes that a longer window admits a call for which a shorter one has no room, or has had none before.
local function owe(entry, level, moves, state, cost)
  if entry.owesUntil <= now and moves.delay(level, state, now, cost) == 0 then return end
  -- the window may be full now, and is again once all is paid
  local from = entry.owesUntil > now and entry.owesUntil or now + 2 * level.windowUs
  entry.owesUntil = from + payUs(level, moves, cost)
end

-- How long until a call fits beside what its limit has to pay: until that is paid, or another limit of the caller admits the call.
local function delayOwing(ledger, cost, delay)
  local least = huge
  for _, entry in ipairs(ledger.entries) do
    local limit = entry.limit
    least = min(least, max(entry.owesUntil - now, limit.moves[1].delay(limit.levels[1], entry.states[1], now, cost)))
  end
  return max(delay, least)
end

-- What a limit that has to pay has left.
local function remainingOwing(ledger, remaining)
  local most = 0
  for _, entry in ipairs(ledger.entries) do
    local limit = entry.limit
    if entry.owesUntil <= now then most = max(most, limit.moves[1].remaining(limit.levels[1], entry.states[1], now)) end
  end
  return min(remaining, most)
end

-- More than a limit ever admits at once is recorded in parts, each of which can be counted ahead.
local function record(entry, own, isPlan, cost, wait)
  for l, level in ipairs(entry.limit.levels) do
    local moves, state = entry.limit.moves[l], entry.states[l]
    local carries = isFaster(level, moves, own.limit) and not (isPlan and level.windowUs)
    local isShorter = level.windowUs and moves.perUs and periodOf(level) < (periodOf(own.limit.levels[1]) or 0)
    if isPlan and isShorter and not own.isOutside then owe(entry, level, moves, state, cost) end
    local capacity = capacityOf(level, moves)
    local parts = capacity > 0 and cost > capacity and min(MOST_PARTS, ceil(cost / capacity)) or 1
    for part = 1, parts do
      recordPart(level, moves, state, carries, part < parts and capacity or cost - (parts - 1) * capacity, wait)
    end
  end
end

-- Records a call in all entries but its own. Plans that were not used for long leave, if another limit of the caller knows as much.
local function recordInOthers(ledger, rule, own, cost, wait)
  local staying = { own }
  if own.owesUntil > now then own.owesUntil = own.owesUntil + payUs(own.limit.levels[1], own.limit.moves[1], cost) end
  for _, entry in ipairs(ledger.entries) do
    local isNeeded = entry.staysUntil >= now or entry.owesUntil > now or not isKnownTo(staying, entry)
    local isStaying = not rule.stated or (isStated(rule, entry.limit.mark) and isNeeded)
    if entry ~= own and isStaying then
      staying[#staying + 1] = entry
      record(entry, own, rule.stated, cost, wait)
    end
  end
  ledger.entries = staying
  if not staying[2] then own.owesUntil = 0 end
end

-- Since when what is taken back from an entry was counted by its limit: calls of before a change of the rule were admitted by another one,
-- also if the caller came first after it.
local function countsSince(rule, entry)
  local isOwn = entry.limit.mark == rule.limit.mark and not rule.stated
  return isOwn and entry.joinedAt < 0 and rule.countsSince or entry.joinedAt
end
