-- A partition: the callers of a rule, or on a Cluster some of them. They live in one hash, so that a batch reads and writes them
-- with one command each. A hash cannot expire single callers, so there are two of them, the current and the previous:
--
--   current  |=========|==========|======...      what is counted goes into the current hash
--   previous    |    `-> previous |              a caller is looked for in the current one first, then in the previous one
--               `- deleted when nothing in it matters any more; then the current one becomes the previous one
--
-- The field '@' of a hash holds numbers: when it began, until when anything in it matters, until when the previous one does,
-- when a caller was last reset; the mark of the rule's version, since when it counts, and the number that states end with; when
-- the partition was created, and when this field was last written; when the previous hash began; and how callers are spread
-- (see layout.ts): a code and a seed. The code has two digits more than processes know: the level at which the next
-- generation begins, and which of the two names of each shard is that of the current generation. Then follow the versions, if
-- there are several.
-- The field '!' .. caller holds when the caller was reset: charges before that are not refunded any more.
-- Other fields are callers.

local function readAbout(partition, about)
  partition.begun, partition.lasts, partition.previousLasts, partition.resetAt, partition.mark, partition.since,
    partition.version, partition.createdAt, partition.saved, partition.previousBegun, partition.code, partition.seed =
    fetch(ABOUT, about)
  partition.about = about
end

-- Begins the current hash of a partition, which continues the previous one if there is one that still matters.
local function beginPartition(partition)
  local about = readFields(partition.previous, '@')[1]
  partition.isKnown, partition.isSpelled, partition.about = false, false, ''
  partition.begun, partition.lasts, partition.previousLasts, partition.resetAt = now, 0, 0, -1
  partition.mark, partition.since, partition.version, partition.saved = 0, 0, 0, now
  partition.previousBegun, partition.code, partition.seed = 0, 0, 0
  if about and #about >= ABOUT_BYTES then
    readAbout(partition, about)
    local begun, lasts, code, seed = partition.begun, partition.lasts, partition.code, partition.seed
    partition.begun, partition.lasts, partition.previousLasts = now, 0, lasts
    partition.previousBegun, partition.code, partition.seed = 0, 0, 0
    if lasts > now then
      local from, to, _, _, bank = levelsIn(code)
      partition.previousBegun, partition.seed = begun, seed
      partition.code = codeOf(floor(code / 4096) % 8, from, to, 1 - bank)
    end
    if now < partition.saved then stepBack(partition) end
  else
    local time = call('TIME')
    partition.createdAt = time[1] * SECOND + time[2]
  end
  partition.isPreviousKnown = partition.previousLasts <= now
  -- freed in the background, rather than at once when it expires
  if about and partition.isPreviousKnown then call('UNLINK', partition.previous) end
end

-- The current hash becomes the previous one; returns whether callers are spread otherwise then.
local function rotate(partition)
  local from, to, _, _, bank = levelsIn(partition.code)
  local level = to > 0 and nextLevel(partition, to, bank) or 0
  if level ~= to then
    local code = partition.code + 4096 * (level - floor(partition.code / 4096) % 8)
    local head, rest = string.sub(partition.about, 1, ABOUT_BYTES - 16), string.sub(partition.about, ABOUT_BYTES - 7)
    call('HSET', partition.current, '@', head .. pack('<d', code) .. rest)
  end
  if partition.version > 0 then levelsOf(partition, partition.version) end
  call('UNLINK', partition.previous)
  local doesMatter = partition.lasts > now
  if doesMatter then call('RENAME', partition.current, partition.previous) else call('UNLINK', partition.current) end
  partition.code = codeOf(level, from, to, 1 - bank)
  partition.previousBegun, partition.begun = partition.begun, now
  partition.previousLasts, partition.lasts = partition.lasts, 0
  partition.isKnown, partition.isSpelled = false, false
  if to > 0 and not doesMatter then
    partition.code, partition.seed = 0, 0
    return true
  end
  return level ~= to
end

-- Partitions as the last run left them, by name, so that the field '@' need not be decoded again if it is the same; not those of
-- which more has changed than their callers.
local MAX_KEPT = 256
local kept, keptCount = {}, 0

local function partitionOf(current, previous)
  local partition = kept[current]
  if partition and partition.isSettled then return partition end
  if not partition then
    if keptCount == MAX_KEPT then kept, keptCount = {}, 0 end
    keptCount = keptCount + 1
  end
  partition = { current = current, previous = previous, about = '', isKnown = true, isSpelled = true, idleAts = {} }
  kept[current] = partition
  return partition
end

-- Opens a partition and reads its callers, `size` of the arguments behind `offset`, in its current hash; returns whether the
-- request has them spread otherwise.
local function openPartition(partition, layout, offset, size)
  partition.isSettled, partition.layout, partition.offset, partition.size, partition.served = false, layout, offset, size, 0
  partition.states, partition.first, partition.last, partition.isPreviousKnown = false, false, 0, false
  partition.endings, partition.reserved = false, false
  local raws
  if layout and floor(layout.code / 8) % 8 > 0 then
    raws = readFields(partition.current, '@')
  else
    raws = readFields(partition.current, '@', unpack(args, offset + 1, offset + size))
  end
  local about = raws[1]
  partition.raws = raws
  if about and #about >= ABOUT_BYTES then
    if about ~= partition.about then readAbout(partition, about) end
    if now < partition.saved then stepBack(partition) end
  else
    if about then
      call('UNLINK', partition.current)
      partition.raws = {}
    end
    beginPartition(partition)
  end
  local code = partition.code
  if code ~= 0 or layout then
    if code % 4096 ~= (layout and layout.code or 0) or (layout and layout.seed ~= partition.seed) then return true end
  end
  if partition.isKnown and now >= partition.previousLasts then
    partition.isPreviousKnown = true
    local age = now - partition.begun
    -- nothing in the previous hash matters any more
    if age < 0 or (age >= SECOND and age >= partition.lasts - now) then return rotate(partition) end
  end
  return false
end

-- Adds callers that are only in the previous hash.
local function readPrevious(partition)
  local offset, raws, places, wanted = partition.offset, partition.raws, {}, {}
  for place = 1, partition.size do
    if not raws[place + 1] then
      places[#places + 1], wanted[#wanted + 1] = place, args[offset + place]
    end
  end
  partition.isPreviousKnown = true
  if partition.layout then return readOlderShards(partition, places) end
  local found = readFields(partition.previous, unpack(wanted))
  for i, place in ipairs(places) do raws[place + 1] = found[i] end
end

-- The place of the next caller of a rule among those of its partition, whose states are read then. Calls of one caller have one
-- place.
local function nextCaller(rule, partition)
  local place = partition.served + 1
  partition.served = place
  if request.same then
    local field, first = args[partition.offset + place], partition.first or {}
    partition.first = first
    if first[field] then return first[field] end
    first[field] = place
  end
  local raw, states, widths = partition.raws[place + 1], partition.states, rule.widths
  if not (raw or partition.isPreviousKnown) then
    readPrevious(partition)
    raw = partition.raws[place + 1]
  end
  local format = raw and widths.formats[#raw]
  if format then
    local state = { fetch(format, raw) }
    local count = #raw / 8
    if state[count] == partition.version then
      state[count] = nil
      if count <= widths.slots then
        for slot = count, widths.slots do state[slot] = 0 end
      end
      states[1][place] = state
      return place
    end
  end
  local endings, reserved
  if raw then
    reserved, raw = reservedIn(raw)
    endings, raw = endingsIn(raw)
  end
  local stored = raw and storedStates(rule, raw)
  for l = 1, #rule.all do states[l][place] = stored and stored[l] or blank(rule.all[l].slots) end
  if endings then
    partition.endings = partition.endings or {}
    partition.endings[place] = endings
    bookEnded(rule, place, endings)
  end
  if reserved then
    partition.reserved = partition.reserved or {}
    partition.reserved[place] = reserved
    releaseEnded(rule, place, reserved)
  end
  return place
end

-- Lets the states of a caller be written after they were amended.
local function changeAmended(rule, place)
  local idleAt, states = 0, rule.partition.states
  for l, level in ipairs(rule.all) do idleAt = max(idleAt, rule.allMoves[l].idleAt(level, states[l][place])) end
  rule.partition.idleAts[place] = idleAt
end

-- Deletes callers of which nothing matters any more.
local function forget(partition, fields)
  for _, field in ipairs(fields) do
    for _, shard in ipairs(shardsWith(partition, field)) do call('HDEL', shard, field) end
  end
  call('HDEL', partition.current, unpack(fields))
  if partition.previousLasts > now then call('HDEL', partition.previous, unpack(fields)) end
end

-- What is written to a partition: fields and their texts, in turn.
local written = {}

-- Collects what has changed; returns how many texts there are, and callers to forget.
local function collect(partition)
  local all, widths, states, idleAts = partition.all, partition.widths, partition.states, partition.idleAts
  local offset, version, count, last, gone = partition.offset, partition.version, 0, partition.last, nil
  local held, reserved = partition.endings, partition.reserved
  for place = 1, partition.served do
    local idleAt, endings = idleAts[place], held and held[place]
    idleAts[place] = nil
    if idleAt and endings and endings[1] then idleAt = idleWith(partition, place, endings) end
    local list = reserved and reserved[place]
    if idleAt and list then idleAt = max(idleAt, list.last) end
    if idleAt and idleAt > now then
      written[count + 1] = args[offset + place]
      count = count + 2
      written[count] = encode(states, place, all, widths, version)
      if endings then written[count] = written[count] .. endingsText(endings) end
      if list then written[count] = written[count] .. reservedText(list) end
      if idleAt > last then last = idleAt end
    elseif idleAt then
      gone = gone or {}
      gone[#gone + 1] = args[offset + place]
    end
  end
  if partition.resets then
    for field, moment in pairs(partition.resets) do
      written[count + 1], written[count + 2] = '!' .. field, pack('<d', moment)
      count = count + 2
    end
  end
  partition.last = last
  return count, gone
end

local function savePartition(partition)
  local count, gone = collect(partition)
  local lastsLonger = partition.last > partition.lasts
  -- some more than is needed, so that it need not be written again for a while
  if lastsLonger then partition.lasts = now + min(max((partition.last - now) * 1.25, SECOND), LONGEST) end
  local isPlain = not (partition.isChanged or partition.lists or partition.untils or partition.layout)
  if lastsLonger or partition.isChanged or (count > 0 and now - partition.saved >= SECOND) then
    local versions = isPlain and string.sub(partition.about, ABOUT_BYTES + 1) or spell(partition)
    partition.saved = now
    partition.about = pack(
      ABOUT, partition.begun, partition.lasts, partition.previousLasts, partition.resetAt, partition.mark, partition.since,
      partition.version, partition.createdAt, partition.saved, partition.previousBegun, partition.code, partition.seed
    ) .. versions
    written[count + 1], written[count + 2] = '@', partition.about
    count = count + 2
  end
  if count > 0 and partition.isSpread then
    saveShards(partition, written, count)
  elseif count > 0 then
    local added = call('HSET', partition.current, unpack(written, 1, count))
    if added > 0 and call('HLEN', partition.current) > (request.most or PARTITION_CALLERS) then
      spreadFurther(partition.current, partition.about)
    end
  end
  if lastsLonger then expire(partition.current, partition.lasts) end
  if gone then forget(partition, gone) end
  partition.isSettled = isPlain and partition.isKnown
end
