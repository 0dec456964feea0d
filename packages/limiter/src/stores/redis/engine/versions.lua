-- Rules whose limits differ between processes, or have just changed.
--
-- Each set of limits that lives in a partition is a version of the rule. While several are in use, the state of a caller holds the
-- numbers of all of them, one after the other: every call is judged by its own version, and recorded by all others. So each
-- version knows all calls, whichever version admitted them. A version that is no longer used leaves after a while
-- (rule-versions.ts, which does the same for counts in memory).
--
-- Whenever a version joins or leaves, the layout of states gets another number. The field '@' .. number lists the levels: `of` is
-- the mark of the version that a level belongs to, `start` is when that version joined, `from` is the index of the level that
-- it continues in the list before, which it `keeps` unchanged, or converts as of `start`. A state is converted when it is read:
-- the answer does not depend on when the caller comes, and a refusal needs to store nothing.
--
-- The mark of a partition is that of its only version; with several it is the negative mark of the one that was used last, and
-- pairs of numbers follow in the field '@': the mark of each version, and until when it is kept.

-- A state that so many versions came after counts as nothing.
local MOST_CONVERSIONS = 250

-- The levels of a layout of states.
local function levelsOf(partition, number)
  partition.lists = partition.lists or {}
  if partition.lists[number] == nil then
    local field = string.format('@%.0f', number)
    local text = call('HGET', partition.current, field) or readFields(partition.previous, field)[1]
    local isList, list = pcall(cmsgpack.unpack, text)
    partition.lists[number] = text and isList and type(list) == 'table' and list or false
  end
  return partition.lists[number]
end

local function versionsIn(levels)
  local versions = {}
  for l, level in ipairs(levels) do
    local version = versions[#versions]
    if not version or version.mark ~= level.of then
      version = { mark = level.of, start = level.start, at = l - 1, longest = 0, levels = {} }
      versions[#versions + 1] = version
    end
    table.insert(version.levels, level)
    version.longest = max(version.longest, periodOf(level) or 0)
  end
  return versions
end

-- The place of the level whose counts a new one continues: that of its period, else the next longer one, else the longest.
local function sourceLevelIn(levels, period, l, algorithm)
  local longer, longest
  for _, level in ipairs(levels) do
    if algorithmOf(level) ~= algorithm then return nil end
  end
  if not period then return levels[l] and l end
  if levels[l] and periodOf(levels[l]) == period then return l end
  for p, level in ipairs(levels) do
    local other = periodOf(level)
    if not other then return levels[l] and l end
    if other >= period and (not longer or other < periodOf(levels[longer])) then longer = p end
    if not longest or other > periodOf(levels[longest]) then longest = p end
  end
  return longer or longest
end

-- The version that was used last knows best; unless it has forgotten what another one, of a longer period, still knows.
local function sourceLevelOf(versions, latest, level, l)
  local period, algorithm = periodOf(level), algorithmOf(level)
  local place = sourceLevelIn(latest.levels, period, l, algorithm)
  local known = place and periodOf(latest.levels[place])
  if period and (known or 0) < period then
    local levels, places = {}, {}
    for _, version in ipairs(versions) do
      for p, other in ipairs(version.levels) do
        if algorithmOf(other) == algorithm then levels[#levels + 1], places[#places + 1] = other, version.at + p end
      end
    end
    local other = sourceLevelIn(levels, period, 0, algorithm)
    if other and (periodOf(levels[other]) or 0) > (known or 0) then return places[other] end
  end
  return place and latest.at + place
end

local function livesFor(version, versions)
  if request.forgets then return 0 end
  for _, other in ipairs(versions) do
    if other ~= version and other.longest >= version.longest then return KEPT_US end
  end
  return max(KEPT_US, version.longest)
end

local function copyOf(level, of, start, from, keeps)
  local copy = {}
  for name, value in pairs(level) do copy[name] = value end
  copy.of, copy.start, copy.from, copy.keeps, copy.behindUs = of, start, from, keeps, nil
  return copy
end

-- Until when each version is kept, by its mark.
local function untilsOf(partition)
  if partition.untils then return partition.untils end
  partition.untils = {}
  for at = ABOUT_BYTES + 1, #partition.about - 15, 16 do
    local mark, lasts = fetch('<dd', partition.about, at)
    partition.untils[mark] = lasts
  end
  return partition.untils
end

-- Writes a list of levels when the partition is saved.
local function keepList(partition, levels)
  partition.spelling = partition.spelling or {}
  partition.spelling[partition.version], partition.isSpelled = levels, true
end

local function define(partition, levels)
  partition.version = partition.version + 1
  partition.lists = partition.lists or {}
  partition.lists[partition.version] = levels
  keepList(partition, levels)
end

-- What is counted so far is converted as of now, even if nothing else is written, and may matter for longer than it did.
local function extend(partition, rule, earlierLevels)
  local leftUs, lasts = max(0, partition.lasts - now, partition.previousLasts - now), 0
  for _, earlier in ipairs(earlierLevels) do
    for _, level in ipairs(rule.levels) do
      local longest = algorithmOf(earlier) == algorithmOf(level) and movesOf(level).longest
      lasts = max(lasts, longest and longest(level, scaleIn(earlier.shape), leftUs) or leftUs + (periodOf(level) or 0))
    end
  end
  lasts = min(now + lasts, now + LONGEST)
  partition.last = max(partition.last, lasts)
  if partition.previousLasts > now and lasts > partition.previousLasts then
    partition.previousLasts = lasts
    expire(partition.previous, lasts)
  end
end

-- The versions that stay when a rule's is used, the rule's own among them if it is there.
local function stayingOf(versions, rule, untils)
  local staying, own = {}, nil
  for _, version in ipairs(versions) do
    if version.mark == rule.mark then own = version end
    if version.mark == rule.mark or untils[version.mark] > now then staying[#staying + 1] = version end
  end
  while #staying + (own and 0 or 1) > MOST_VERSIONS do
    local first
    for s, version in ipairs(staying) do
      if version ~= own and (not first or untils[version.mark] < untils[staying[first].mark]) then first = s end
    end
    table.remove(staying, first)
  end
  return staying, own
end

-- Whether all versions but the rule's own are still kept.
local function areKept(partition, rule)
  for at = ABOUT_BYTES + 1, #partition.about - 15, 16 do
    local mark, lasts = fetch('<dd', partition.about, at)
    if mark ~= rule.mark and lasts <= now then return false end
  end
  return not partition.untils
end

-- The levels after a rule's version was used: those of the versions that stay, and those of the rule if it is new.
local function join(partition, rule, levels, versions, latest, staying, own, start)
  local after = {}
  for _, version in ipairs(staying) do
    for l, level in ipairs(version.levels) do
      after[#after + 1] = copyOf(level, level.of, level.start, version.at + l, true)
    end
  end
  if not own then
    for l, level in ipairs(rule.levels) do
      after[#after + 1] = copyOf(level, rule.mark, start, sourceLevelOf(versions, latest, level, l))
    end
    partition.since = start
    if partition.isKnown or partition.previousLasts > now then extend(partition, rule, levels) end
  end
  define(partition, after)
  partition.isChanged = true
end

-- Lets the version of a rule be the one that was used last; it joins those in use, and those that are not used any more leave.
local function takeOver(partition, rule)
  local levels = partition.version > 0 and levelsOf(partition, partition.version)
  if not levels then
    partition.mark = rule.mark
    partition.since = min(now, partition.version == 0 and rule.since or -1)
    levels = {}
    for l, level in ipairs(rule.levels) do levels[l] = copyOf(level, rule.mark, partition.since) end
    return define(partition, levels)
  end
  if not partition.isSpelled then keepList(partition, levels) end
  if partition.mark == rule.mark or (partition.mark == -rule.mark and areKept(partition, rule)) then return end
  local untils, latest = untilsOf(partition), nil
  local mark = partition.mark < 0 and -partition.mark or partition.mark
  local versions, listed = {}, versionsIn(levels)
  for _, version in ipairs(listed) do
    if version.mark == mark then latest = version end
    if version.mark == mark or untils[version.mark] > now then versions[#versions + 1] = version end
  end
  -- a limit that was changed before the other one took over does so now
  local start = min(now, rule.since and rule.since > partition.since and rule.since or now)
  if mark ~= rule.mark then
    local all, isKnown = {}, false
    for v, version in ipairs(versions) do
      all[v], isKnown = version, isKnown or version.mark == rule.mark
    end
    if not isKnown then
      local joining = { longest = 0 }
      for _, level in ipairs(rule.levels) do joining.longest = max(joining.longest, periodOf(level) or 0) end
      all[#all + 1] = joining
    end
    untils[mark] = start + livesFor(latest, all)
    partition.isChanged = true
  end
  local staying, own = stayingOf(versions, rule, untils)
  if not own or #staying < #listed then join(partition, rule, levels, versions, latest, staying, own, start) end
  local isAlone = #staying + (own and 0 or 1) == 1
  partition.mark = isAlone and rule.mark or -rule.mark
  if isAlone and own then partition.since = own.start end
  local kept = {}
  for _, version in ipairs(staying) do
    kept[version.mark] = untils[version.mark] or 0
    -- the partition is kept for as long as its versions are
    if not isAlone then partition.last = max(partition.last, kept[version.mark]) end
  end
  kept[rule.mark] = 0
  partition.untils = isAlone and {} or kept
end

-- The clock of Redis has stepped back: what was counted by it is moved back as far, as a version of its own.
local function stepBack(partition)
  local levels = partition.version > 0 and levelsOf(partition, partition.version)
  local behindUs, after, lessUs = partition.saved - now, {}, partition.saved - now
  for l, level in ipairs(levels or {}) do
    -- moments of a calendar are not measured by the clock that was set back
    if movesOf(level).isCalendar then lessUs = 0 end
    after[l] = copyOf(level, level.of, min(level.start, now), l, true)
    after[l].behindUs = behindUs
  end
  if levels then define(partition, after) end
  local untils = untilsOf(partition)
  for mark, lasts in pairs(untils) do untils[mark] = lasts - behindUs end
  partition.lasts, partition.previousLasts = max(0, partition.lasts - lessUs), max(0, partition.previousLasts - lessUs)
  partition.last = max(partition.last, partition.lasts, partition.previousLasts)
  partition.since, partition.resetAt = min(partition.since, now), min(partition.resetAt, now)
  partition.saved, partition.isChanged = now, true
end

-- Lets a rule know where its levels are among those of all versions.
local function bindRule(rule)
  local partition = rule.partition
  rule.since = partition.since
  if partition.mark ~= rule.mark then
    local all = {}
    for l, level in ipairs(levelsOf(partition, partition.version)) do
      all[l] = level
      if level.of == rule.mark and (l == 1 or all[l - 1].of ~= rule.mark) then rule.at, rule.since = l - 1, level.start end
    end
    for l, level in ipairs(rule.levels) do all[rule.at + l] = copyOf(level, rule.mark, rule.since) end
    for _, level in ipairs(all) do level.holder = rule.levels[1].holder end
    rule.all, rule.allMoves, rule.widths, rule.hasOthers = all, movesOfAll(all), widthsOf(all), #all > #rule.levels
  end
  local states = partition.states
  if not states then
    states = {}
    for l = 1, #rule.all do states[l] = {} end
    partition.all, partition.widths, partition.states = rule.all, rule.widths, states
  end
  rule.states = states
  if not rule.hasOthers then return end
  rule.states = {}
  for l = 1, #rule.levels do rule.states[l] = states[rule.at + l] end
end

-- Whether a level is one of the rule's own, not of another version.
local function isOwn(rule, l)
  return l > rule.at and l <= rule.at + #rule.levels
end

-- Counts, in a level of another version, a call that a rule has admitted. A level that admits more in the long run counts ahead
-- what does not fit: a burst of the slower version is not to come on top of what the faster one admits.
local function record(rule, level, moves, state, cost, wait)
  if not rule.slowest then
    rule.slowest = huge
    for l, own in ipairs(rule.levels) do
      local perUs = rule.moves[l].perUs
      if perUs then rule.slowest = min(rule.slowest, perUs(own)) end
    end
  end
  local carries = moves.perUs and moves.perUs(level) > rule.slowest or false
  if moves.record then return moves.record(level, state, now, cost, wait, carries) end
  local fitsIn = carries and moves.delay(level, state, now, cost) or 0
  moves.take(level, state, now, cost, fitsIn < huge and max(wait, fitsIn) or wait)
end

-- Writes the lists of levels that were used; returns until when each version is kept, as text.
local function spell(partition)
  for version, levels in pairs(partition.spelling or {}) do
    call('HSETNX', partition.current, string.format('@%.0f', version), cmsgpack.pack(levels))
  end
  if not partition.untils then return string.sub(partition.about, ABOUT_BYTES + 1) end
  local texts = {}
  for mark, lasts in pairs(partition.untils) do texts[#texts + 1] = pack('<dd', mark, lasts) end
  return table.concat(texts)
end

local function isUsed(state, slots)
  for slot = 1, state.n or slots do
    if state[slot] ~= 0 then return true end
  end
  return false
end

-- What a level makes of the state of an earlier level; nothing if it starts from zero.
local function inherited(level, stored, earlier, at)
  if not isUsed(stored, earlier.slots) then return nil end
  local state = { n = stored.n or earlier.slots }
  for slot = 1, state.n do state[slot] = stored[slot] end
  if earlier.shape == level.shape then return state end
  local inherit = makers[level.name] and movesOf(level).inherit
  local scale = scaleIn(earlier.shape)
  return inherit and #scale == #scaleIn(level.shape) and inherit(level, state, scale, at) or nil
end

-- What a layout makes of the states of the layout before.
local function converted(states, earlierLevels, levels)
  local after = {}
  for l, level in ipairs(levels) do
    local state = level.from and states[level.from]
    if state and not level.keeps then
      state = inherited(level, state, earlierLevels[level.from], min(now, level.start))
    end
    after[l] = state or blank(level.slots)
    local shift = level.keeps and level.behindUs and movesOf(level).shift
    if shift and isUsed(after[l], level.slots) then shift(level, after[l], level.behindUs) end
  end
  return after
end

-- The states that a text holds, as the layout in force reads them; nothing if they cannot be read.
local function storedStates(rule, raw)
  local partition, count = rule.partition, #raw / 8
  if count > MAX_NUMBERS or count ~= floor(count) then return nil end
  local numbers = numbersIn(raw)
  local version = numbers[count]
  if version == partition.version then return statesIn(numbers, count, rule.all, rule.widths) end
  if not (version and version < partition.version and version >= partition.version - MOST_CONVERSIONS) then return nil end
  local levels = levelsOf(partition, version)
  local states = levels and statesIn(numbers, count, levels, widthsOf(levels))
  for later = version + 1, states and partition.version or 0 do
    local laterLevels = levelsOf(partition, later)
    if not laterLevels then return nil end
    states, levels = converted(states, levels, laterLevels), laterLevels
  end
  return states
end
