/**
 * The part of the script for homes whose callers are spread over several hashes, the parts. It stands within the slow path.
 * The hash of the home says how its callers are spread; a part has a field '@', which says when its generation was begun and
 * until when anything in the part matters. A part of another generation is not read, and is dropped before it is written.
 *
 * A caller is looked for where the young generation writes, then at the lower levels that it wrote to before it was spread
 * further, and then, in the same order, where the old generation wrote. So spreading a home moves no callers: each moves when
 * it is next charged.
 */
export const SPREAD: string = `
  local function levelsIn(code)
    return code % 8, floor(code / 8) % 8, floor(code / 64) % 8, floor(code / 512) % 8, floor(code / 32768) % 2
  end

  -- the code of a generation that has just begun: the level it writes to, the levels of the one before, and its bank
  local function codeOf(level, oldFrom, oldTo, bank)
    return level + 8 * level + 64 * oldFrom + 512 * oldTo + 4096 * level + 32768 * bank
  end

  -- the level that the next generation begins with
  local function nextLevel(home, level, bank)
    local callers = call('HLEN', KEYS[home.layout.parts[level][1] + bank]) * FAN_OUT ^ level
    while level > 0 do
      local room = level == 1 and homeCallers or partCallers * FAN_OUT ^ (level - 1)
      if callers * 4 > room then break end
      level = level - 1
    end
    return level
  end

  -- reads callers that one generation has at one level; returns those that are not there
  local function readLevel(home, level, bank, begun, root, keys)
    local places, fields, raws, seen = home.layout.parts[level], home.fields, home.raws, home.seen
    local questions, askers, names, missing = {}, {}, {}, {}
    for i = 1, #keys do
      local key = keys[i]
      local at = level == 0 and 0 or places[key] + bank
      local question = questions[at]
      if question then
        local size = #question
        question[size + 1], askers[at][size] = fields[key], key
      else
        questions[at], askers[at], names[#names + 1] = { '@', fields[key] }, { key }, at
      end
    end
    for i = 1, #names do
      local at = names[i]
      local found = readFields(at == 0 and root or KEYS[at], unpack(questions[at]))
      local about, isOurs = found[1], at == 0
      seen[at] = -1
      if at > 0 and about and #about >= PART_BYTES then
        local written, lasts = fetch('<dd', about)
        if written == begun then isOurs, seen[at] = true, lasts end
      end
      local asking = askers[at]
      for j = 1, #asking do
        local raw = isOurs and found[j + 1]
        if raw then raws[asking[j] + 1] = raw else missing[#missing + 1] = asking[j] end
      end
    end
    return missing
  end

  function rare.readParts(home)
    local from, to, _, _, bank = levelsIn(home.code)
    home.seen = {}
    if to == 0 then return end
    local keys = {}
    for key = 1, #home.fields do keys[key] = key end
    readLevel(home, to, bank, home.begun, home.young, keys)
    home.isSpread, home.isOldKnown = true, from == to and home.oldLasts <= now
  end

  local function readOlder(home, keys)
    local from, to, oldFrom, oldTo, bank = levelsIn(home.code)
    for level = to - 1, from, -1 do keys = readLevel(home, level, bank, home.begun, home.young, keys) end
    if home.oldLasts <= now then return end
    for level = oldTo, oldFrom, -1 do keys = readLevel(home, level, 1 - bank, home.oldBegun, home.old, keys) end
  end

  function rare.saveParts(home, count)
    local _, to, _, _, bank = levelsIn(home.code)
    local places, written, seen, last = home.layout.parts[to], home.written, home.seen, home.last
    local lasts, grown = max(home.lasts, home.oldLasts), nil
    local about, keys, groups, names = pack('<dd', home.begun, lasts), {}, {}, {}
    for key = 1, #home.fields do keys[home.fields[key]] = key end
    for i = 1, count, 2 do
      local field = written[i]
      if field == '@' then
        call('HSET', home.young, field, written[i + 1])
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
    -- parts grow alike, so one of them speaks for all
    if grown and call('HLEN', grown) > partCallers then spreadFurther(home.young, home.about) end
  end

  -- every part in which a caller could be, whatever generation it is of
  local function partsWith(home, key)
    local names = {}
    for _, places in ipairs(home.layout and home.layout.parts or {}) do
      if places[key] then
        table.insert(names, KEYS[places[key]])
        table.insert(names, KEYS[places[key] + 1])
      end
    end
    return names
  end

  -- after a change of the limit, parts live on for as long as the home does
  function rare.keepParts(count)
    local about = readFields(KEYS[1], '@')[1]
    if not (about and #about >= ABOUT_BYTES) then return reply end
    local _, lasts, oldLasts = fetch(ABOUT, about)
    for k = 2, #KEYS do
      local leftMs = call('PTTL', KEYS[k])
      if leftMs >= 0 and leftMs < (max(lasts, oldLasts) - now) / 1000 then expire(KEYS[k], max(lasts, oldLasts), count) end
    end
    return reply
  end

  function rare.layoutsOf(homes)
    local layouts = { -1 }
    for _, home in ipairs(homes) do
      table.insert(layouts, home.code % 4096)
      table.insert(layouts, home.seed)
    end
    return layouts
  end
`
