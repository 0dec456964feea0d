/**
 * The part of the script for partitions whose callers are spread over several hashes, the shards. It is part of the slow path.
 * The hash of the partition has the layout of its callers; a shard has a field '@' with when its generation was begun and
 * until when anything in the shard matters. A shard of another generation is not read, and is dropped before it is written.
 *
 * A caller is looked for where the current generation writes, then at the lower levels that it wrote to before it was spread
 * further, and then, in the same order, where the previous generation wrote. So spreading a partition moves no callers: each moves when
 * it is next charged.
 */
export const SPREAD: string = `
  local function levelsIn(code)
    return code % 8, floor(code / 8) % 8, floor(code / 64) % 8, floor(code / 512) % 8, floor(code / 32768) % 2
  end

  -- the code of a generation that has just begun: the level it writes to, the levels of the one before, and its bank
  local function codeOf(level, previousFrom, previousTo, bank)
    return level + 8 * level + 64 * previousFrom + 512 * previousTo + 4096 * level + 32768 * bank
  end

  -- the level that the next generation begins with
  local function nextLevel(partition, level, bank)
    local callers = call('HLEN', KEYS[partition.layout.shards[level][1] + bank]) * FAN_OUT ^ level
    while level > 0 do
      local room = level == 1 and partitionCallers or shardCallers * FAN_OUT ^ (level - 1)
      if callers * 4 > room then break end
      level = level - 1
    end
    return level
  end

  -- reads callers that one generation has at one level; returns those that are not there
  local function readLevel(partition, level, bank, begun, root, keys)
    local places, fields, raws, seen = partition.layout.shards[level], partition.fields, partition.raws, partition.seen
    local fieldsAt, keysAt, names, missing = {}, {}, {}, {}
    for i = 1, #keys do
      local key = keys[i]
      local at = level == 0 and 0 or places[key] + bank
      local wanted = fieldsAt[at]
      if wanted then
        local size = #wanted
        wanted[size + 1], keysAt[at][size] = fields[key], key
      else
        fieldsAt[at], keysAt[at], names[#names + 1] = { '@', fields[key] }, { key }, at
      end
    end
    for i = 1, #names do
      local at = names[i]
      local found = readFields(at == 0 and root or KEYS[at], unpack(fieldsAt[at]))
      local about, isOurs = found[1], at == 0
      seen[at] = -1
      if at > 0 and about and #about >= SHARD_BYTES then
        local written, lasts = fetch('<dd', about)
        if written == begun then isOurs, seen[at] = true, lasts end
      end
      local wantedKeys = keysAt[at]
      for j = 1, #wantedKeys do
        local raw = isOurs and found[j + 1]
        if raw then raws[wantedKeys[j] + 1] = raw else missing[#missing + 1] = wantedKeys[j] end
      end
    end
    return missing
  end

  function slowPath.readShards(partition)
    local from, to, _, _, bank = levelsIn(partition.code)
    partition.seen = {}
    if to == 0 then return end
    local keys = {}
    for key = 1, #partition.fields do keys[key] = key end
    readLevel(partition, to, bank, partition.begun, partition.current, keys)
    partition.isSpread, partition.isPreviousKnown = true, from == to and partition.previousLasts <= now
  end

  local function readOlderShards(partition, keys)
    local from, to, previousFrom, previousTo, bank = levelsIn(partition.code)
    for level = to - 1, from, -1 do keys = readLevel(partition, level, bank, partition.begun, partition.current, keys) end
    if partition.previousLasts <= now then return end
    for level = previousTo, previousFrom, -1 do keys = readLevel(partition, level, 1 - bank, partition.previousBegun, partition.previous, keys) end
  end

  function slowPath.saveShards(partition, count)
    local _, to, _, _, bank = levelsIn(partition.code)
    local places, written, seen, last = partition.layout.shards[to], partition.written, partition.seen, partition.last
    local lasts, grown = max(partition.lasts, partition.previousLasts), nil
    local about, keys, groups, names = pack('<dd', partition.begun, lasts), {}, {}, {}
    for key = 1, #partition.fields do keys[partition.fields[key]] = key end
    for i = 1, count, 2 do
      local field = written[i]
      if field == '@' then
        call('HSET', partition.current, field, written[i + 1])
      else
        -- a reset has its moment beside its caller
        local at = places[keys[field] or keys[string.sub(field, 2)]] + bank
        local group = groups[at]
        if not group then
          group = seen[at] < last and { '@', about } or {}
          groups[at], names[#names + 1] = group, at
        end
        local size = #group
        group[size + 1], group[size + 2] = field, written[i + 1]
      end
    end
    for i = 1, #names do
      local at = names[i]
      local name = KEYS[at]
      if seen[at] < 0 then call('UNLINK', name) end
      local added = call('HSET', name, unpack(groups[at]))
      if seen[at] < last then expire(name, lasts, FAN_OUT ^ to) end
      if added > 0 then grown = name end
    end
    -- shards grow alike, so one of them speaks for all
    if grown and call('HLEN', grown) > shardCallers then spreadFurther(partition.current, partition.about) end
  end

  -- every shard in which a caller could be, whatever generation it is of
  local function shardsWith(partition, key)
    local names = {}
    for _, places in ipairs(partition.layout and partition.layout.shards or {}) do
      if places[key] then
        table.insert(names, KEYS[places[key]])
        table.insert(names, KEYS[places[key] + 1])
      end
    end
    return names
  end

  -- after a change of the limit, shards live on for as long as the partition does
  function slowPath.keepShards(count)
    local about = readFields(KEYS[1], '@')[1]
    if not (about and #about >= ABOUT_BYTES) then return reply end
    local _, lasts, previousLasts = fetch(ABOUT, about)
    for k = 2, #KEYS do
      local leftMs = call('PTTL', KEYS[k])
      if leftMs >= 0 and leftMs < (max(lasts, previousLasts) - now) / 1000 then expire(KEYS[k], max(lasts, previousLasts), count) end
    end
    return reply
  end

  function slowPath.layoutsOf(partitions)
    local layouts = { -1 }
    for _, partition in ipairs(partitions) do
      table.insert(layouts, partition.code % 4096)
      table.insert(layouts, partition.seed)
    end
    return layouts
  end
`
