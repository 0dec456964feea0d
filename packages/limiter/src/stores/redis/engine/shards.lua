-- Partitions whose callers are spread over several hashes, the shards, because Redis frees a large hash in its main thread.
-- The hash of the partition has the layout of its callers; a shard has a field '@' with when its generation began and until when
-- anything in the shard matters. A shard of another generation is not read, and is deleted before it is written.
--
-- A caller is looked for where the current generation writes, then at the lower levels that it wrote to before it was spread
-- further, and then, in the same order, where the previous generation wrote. So spreading a partition moves no callers: each
-- moves when it is next charged.

-- A partition with more callers than this is spread, and one whose shards have more is spread further; to free so many takes
-- Redis a millisecond at most.
local PARTITION_CALLERS, SHARD_CALLERS = 2000, 1000

local function levelsIn(code)
  return code % 8, floor(code / 8) % 8, floor(code / 64) % 8, floor(code / 512) % 8, floor(code / 32768) % 2
end

-- The code of a generation that has just begun: the level it writes to, the levels of the one before, and its bank.
local function codeOf(level, previousFrom, previousTo, bank)
  return level + 8 * level + 64 * previousFrom + 512 * previousTo + 4096 * level + 32768 * bank
end

-- Spreads the callers of a partition, from now on, over more shards than before.
local function spreadFurther(current, about)
  local code, seed = fetch('<dd', about, ABOUT_BYTES - 15)
  if floor(code / 8) % 8 == HIGHEST_LEVEL then return end
  -- the address of a table in memory is not known to callers
  if seed == 0 then seed = tonumber(string.sub(redis.sha1hex(tostring({}) .. current .. now), 1, 12), 16) end
  local layout = pack('<dd', code + 8 + 4096, seed)
  call('HSET', current, '@', string.sub(about, 1, ABOUT_BYTES - 16) .. layout .. string.sub(about, ABOUT_BYTES + 1))
end

-- The level that the next generation begins with.
local function nextLevel(partition, level, bank)
  local callers = call('HLEN', keys[partition.layout.shards[level][1] + bank]) * FAN_OUT ^ level
  while level > 0 do
    local room = level == 1 and (request.most or PARTITION_CALLERS) or (request.most or SHARD_CALLERS) * FAN_OUT ^ (level - 1)
    if callers * 4 > room then break end
    level = level - 1
  end
  return level
end

-- Reads callers that one generation has at one level; returns the places of those that are not there.
local function readLevel(partition, level, bank, begun, root, places)
  local shards, raws, seen, offset = partition.layout.shards[level], partition.raws, partition.seen, partition.offset
  local fieldsAt, placesAt, names, missing = {}, {}, {}, {}
  for _, place in ipairs(places) do
    local at = level == 0 and 0 or shards[place] + bank
    if not fieldsAt[at] then
      fieldsAt[at], placesAt[at], names[#names + 1] = { '@' }, {}, at
    end
    table.insert(fieldsAt[at], args[offset + place])
    table.insert(placesAt[at], place)
  end
  for _, at in ipairs(names) do
    local found = readFields(at == 0 and root or keys[at], unpack(fieldsAt[at]))
    local about, isOurs = found[1], at == 0
    seen[at] = -1
    if at > 0 and about and #about >= SHARD_BYTES then
      local written, lasts = fetch('<dd', about)
      if written == begun then isOurs, seen[at] = true, lasts end
    end
    for i, place in ipairs(placesAt[at]) do
      local raw = isOurs and found[i + 1]
      if raw then raws[place + 1] = raw else missing[#missing + 1] = place end
    end
  end
  return missing
end

local function readShards(partition)
  local from, to, _, _, bank = levelsIn(partition.code)
  partition.seen = {}
  if to == 0 then return end
  local places = {}
  for place = 1, partition.size do places[place] = place end
  readLevel(partition, to, bank, partition.begun, partition.current, places)
  partition.isSpread, partition.isPreviousKnown = true, from == to and partition.previousLasts <= now
end

local function readOlderShards(partition, places)
  local from, to, previousFrom, previousTo, bank = levelsIn(partition.code)
  for level = to - 1, from, -1 do
    places = readLevel(partition, level, bank, partition.begun, partition.current, places)
  end
  if partition.previousLasts <= now then return end
  for level = previousTo, previousFrom, -1 do
    places = readLevel(partition, level, 1 - bank, partition.previousBegun, partition.previous, places)
  end
end

-- Where the shards of a caller are among the keys, level by level.
local function placeOf(partition, field)
  if not partition.places then
    partition.places = {}
    for place = 1, partition.size do partition.places[args[partition.offset + place]] = place end
  end
  return partition.places[field]
end

local function saveShards(partition, written, count)
  local _, to, _, _, bank = levelsIn(partition.code)
  local shards, seen, last = partition.layout.shards[to], partition.seen, partition.last
  local lasts, grown = max(partition.lasts, partition.previousLasts), nil
  local about, groups, names = pack('<dd', partition.begun, lasts), {}, {}
  for i = 1, count, 2 do
    local field = written[i]
    if field == '@' then
      call('HSET', partition.current, field, written[i + 1])
    else
      -- a reset has its moment beside its caller
      local at = shards[placeOf(partition, field) or placeOf(partition, string.sub(field, 2))] + bank
      local group = groups[at]
      if not group then
        group = seen[at] < last and { '@', about } or {}
        groups[at], names[#names + 1] = group, at
      end
      table.insert(group, field)
      table.insert(group, written[i + 1])
    end
  end
  for _, at in ipairs(names) do
    local name = keys[at]
    if seen[at] < 0 then call('UNLINK', name) end
    local added = call('HSET', name, unpack(groups[at]))
    if seen[at] < last then expire(name, lasts, FAN_OUT ^ to) end
    if added > 0 then grown = name end
  end
  -- shards grow alike, so one of them speaks for all
  if grown and call('HLEN', grown) > (request.most or SHARD_CALLERS) then spreadFurther(partition.current, partition.about) end
end

-- Every shard in which a caller could be, whatever generation it is of.
local function shardsWith(partition, field)
  local names = {}
  for _, shards in ipairs(partition.layout and partition.layout.shards or {}) do
    local at = shards[placeOf(partition, field)]
    if at then
      table.insert(names, keys[at])
      table.insert(names, keys[at + 1])
    end
  end
  return names
end

-- After a change of the limit, shards live on for as long as the partition does.
local function keepShards(count)
  local about = readFields(keys[1], '@')[1]
  if not (about and #about >= ABOUT_BYTES) then return end
  local _, lasts, previousLasts = fetch(ABOUT, about)
  for k = 2, #keys do
    local leftMs = call('PTTL', keys[k])
    if leftMs >= 0 and leftMs < (max(lasts, previousLasts) - now) / 1000 then
      expire(keys[k], max(lasts, previousLasts), count)
    end
  end
end
