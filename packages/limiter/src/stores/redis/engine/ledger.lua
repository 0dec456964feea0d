-- A ledger: what one rule knows of one caller, under one key. Most have a single limit, and are packed as the numbers of its state,
-- without the zeros at its end, and then the mark of the limit. All others are one list:
--
--   { since, until, steps, leased permits, reservations, { mark, joinedAt, staysUntil, owesUntil, levels, state, … }, … }
--
-- `since` is when the caller was last reset, which is known `until` a moment; `steps` is how often the clock has been set back before the
-- ledger was written; the levels of a limit are beside its states if another limit was used last.

local MOST_BYTES, PLAIN_NUMBERS = 4000000, 200
-- Reads leases.lua and settlements.lua, which follow.
local readLeased, readReserved, leasedText, reservedText, bookEnded, releaseEnded, idleWithLeases

-- One small key beside the ledgers, whose loss shows that counts were lost: when it was created, until when it is kept, when it was
-- last written, how often the clock was set back before all ledgers that are left were written, until when there are ledgers that were
-- written before it was set back again; and for each of these times by how much.
local MOST_STEPS = 50
-- Keys that are idle together do not expire together: Redis would free all of them at one moment.
local MOST_APART_MS = 10000
local era

local function readEra(raw)
  local values = raw and #raw < 4000 and valuesOf(raw)
  if values and #values >= 5 and areNumbers(values, 1, #values) then
    era = { createdAt = values[1], lasts = values[2], saved = values[3], base = values[4], stepsEnd = values[5] }
    era.steps, era.isChanged = {}, false
    for v = 6, #values do era.steps[v - 5] = values[v] end
    if now < era.saved then
      local behindUs = era.saved - now
      era.steps[#era.steps + 1] = behindUs
      era.lasts, era.saved, era.isChanged = max(now, era.lasts - behindUs), now, true
      era.stepsEnd = era.lasts + (request.lingerMs + MOST_APART_MS) * 1000
      while #era.steps > MOST_STEPS do
        era.steps[2] = era.steps[1] + era.steps[2]
        table.remove(era.steps, 1)
        era.base = era.base + 1
      end
    elseif era.steps[1] and now > era.stepsEnd then
      era.base, era.steps = era.base + #era.steps, {}
    end
  else
    era = { createdAt = 0, lasts = 0, saved = now, base = 0, stepsEnd = 0, steps = {}, isChanged = false }
  end
end

-- Written when something else is, at most once a second.
local function saveEra(key, lasts)
  if era.createdAt == 0 then
    local time = call('TIME')
    era.createdAt, era.isChanged = time[1] * SECOND + time[2], true
  end
  if not era.isChanged and lasts <= era.lasts and now - era.saved < SECOND then return end
  if max(lasts, now) > era.lasts then era.lasts = now + min(max(0, lasts - now) * 1.25 + 60 * SECOND, LONGEST) end
  era.saved = now
  local ttl = string.format('%.0f', ceil((era.lasts - now) / 1000) + request.lingerMs)
  call('SET', key, packNumbers(era.createdAt, era.lasts, now, era.base, era.stepsEnd, unpack(era.steps)), 'PX', ttl)
end

-- The states of a limit that follow each other in a list of numbers; nil if the numbers are not of this limit.
local function statesIn(limit, values, last)
  if not areNumbers(values, 1, last) then return nil end
  if limit.isPlain then
    local slots = limit.levels[1].slots
    if last > slots then return nil end
    for slot = last + 1, slots do values[slot] = 0 end
    return { values }
  end
  local states, first = {}, 1
  for l, level in ipairs(limit.levels) do
    local slots = level.slots
    local state = blank(slots)
    if slots == 0 then
      slots = values[first] or 0
      if not (slots >= 0 and slots <= last - first) then slots = 0 end
      first, state.n = first + 1, slots
    end
    for slot = 1, slots do state[slot] = first <= last and values[first] or 0 first = first + 1 end
    states[l] = state
  end
  return first > last and states or nil
end

-- Appends the states of an entry to a list; returns how long it is then, without zeros at its end.
local function addStates(list, entry)
  local size = #list
  for l, level in ipairs(entry.limit.levels) do
    local state, slots = entry.states[l], level.slots
    if slots == 0 then
      slots = state.n
      size = size + 1
      list[size] = slots
    end
    for slot = 1, slots do list[size + slot] = state[slot] end
    size = size + slots
  end
  return size
end

-- An entry of a list; nil if it cannot be read, or nobody knows its limit any more.
local function entryIn(rule, list)
  if type(list) ~= 'table' or not areNumbers(list, 1, 4) then return nil end
  local limit = limitWith(rule, list[1])
  if not limit and type(list[5]) == 'table' then
    local isLimit, known = pcall(limitOf, list[1], list[5])
    limit = isLimit and known
  end
  if not limit then return nil end
  local numbers = {}
  for i = 6, #list do numbers[i - 5] = list[i] end
  local states = statesIn(limit, numbers, #numbers)
  return states and { limit = limit, joinedAt = list[2], staysUntil = list[3], owesUntil = list[4], states = states }
end

-- Moves what was counted before the clock was set back as far back.
local function stepBack(ledger)
  for s = max(0, ledger.steps - era.base) + 1, #era.steps do
    local us = era.steps[s]
    for _, entry in ipairs(ledger.entries) do
      for l, level in ipairs(entry.limit.levels) do
        local shift = entry.limit.moves[l].shift
        if shift and isUsed(entry.states[l]) then shift(level, entry.states[l], us) end
      end
      entry.joinedAt, entry.staysUntil, entry.owesUntil = min(entry.joinedAt, now), entry.staysUntil - us, entry.owesUntil - us
    end
    ledger.since = min(ledger.since, now)
  end
  ledger.steps = era.base + #era.steps
end

local function readList(ledger, rule, list)
  if not areNumbers(list, 1, 3) then return end
  ledger.since, ledger.known, ledger.steps = list[1], list[2], list[3]
  ledger.leased, ledger.reserved = readLeased(list[4]), readReserved(list[5])
  for e = 6, #list do ledger.entries[#ledger.entries + 1] = entryIn(rule, list[e]) end
end

local function readLedger(key, raw, rule)
  local ledger = {
    key = key, isStored = raw and true, entries = {}, since = -1, known = 0, steps = era.base, leased = false, reserved = false,
    joining = false, isChanged = false, idleAt = false,
  }
  local values = raw and #raw <= MOST_BYTES and valuesOf(raw)
  if values and type(values[1]) == 'table' then
    readList(ledger, rule, values[1])
  elseif values then
    local count = #values
    local mark = values[count]
    local limit = type(mark) == 'number' and limitWith(rule, mark)
    if limit then
      values[count] = nil
      local states = statesIn(limit, values, count - 1)
      if states then ledger.entries[1] = { limit = limit, joinedAt = -1, staysUntil = 0, owesUntil = 0, states = states } end
    end
  end
  if era.steps[1] and raw then stepBack(ledger) end
  if ledger.leased then bookEnded(ledger, rule) end
  if ledger.reserved then releaseEnded(ledger, rule) end
  return ledger
end

-- The levels of a limit are kept with it if processes may not know it: limits that the rule does not state, and versions of before.
local function levelsToKeep(ledger, e)
  local entry = ledger.entries[e]
  return (e > 1 or entry.isOutside or request.keepsLevels) and entry.limit.levels or false
end

local function textOf(ledger)
  local entries = ledger.entries
  local first, keepsSince = entries[1], ledger.known > now
  local leased, reserved = leasedText(ledger.leased), reservedText(ledger.reserved)
  local isSingle = first and not entries[2] and first.joinedAt < 0
  if isSingle and not levelsToKeep(ledger, 1) and not (leased or reserved or keepsSince or era.steps[1]) then
    local list, size = first.states[1], first.limit.levels[1].slots
    if not first.limit.isPlain then
      list = {}
      size = addStates(list, first)
    end
    if size <= PLAIN_NUMBERS then
      while size > 0 and list[size] == 0 do size = size - 1 end
      if size == 2 then return packNumbers(list[1], list[2], first.limit.mark) end
      local after = list[size + 1]
      list[size + 1] = first.limit.mark
      local text = packNumbers(unpack(list, 1, size + 1))
      list[size + 1] = after
      return text
    end
  end
  local list = { keepsSince and ledger.since or -1, keepsSince and ledger.known or 0, era.base + #era.steps, leased, reserved }
  for e, entry in ipairs(entries) do
    local one = { entry.limit.mark, entry.joinedAt, entry.staysUntil, max(0, entry.owesUntil), levelsToKeep(ledger, e) }
    addStates(one, entry)
    list[5 + e] = one
  end
  return packNumbers(list)
end

local function idleAtOf(ledger)
  local idleAt = ledger.known
  for _, entry in ipairs(ledger.entries) do idleAt = max(idleAt, entryIdleAt(entry)) end
  if ledger.leased and ledger.leased[1] then idleAt = max(idleAt, idleWithLeases(ledger)) end
  if ledger.reserved then idleAt = max(idleAt, ledger.reserved.last) end
  return idleAt
end

-- Writes a ledger; returns until when it matters.
local function saveLedger(ledger)
  local lasts = ledger.idleAt or idleAtOf(ledger)
  if lasts <= now then
    if ledger.isStored then call('UNLINK', ledger.key) end
    return 0
  end
  lasts = min(lasts, now + LONGEST)
  local ms = (lasts - now) / 1000
  local ttl = ceil(ms + now % 1024 / 1024 * min(ms / 8, MOST_APART_MS)) + request.lingerMs
  call('SET', ledger.key, textOf(ledger), 'PX', string.format('%.0f', ttl))
  return lasts
end
