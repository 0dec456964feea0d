/**
 * The part of the script that reads and writes states. All callers of a rule live in one hash, so that a batch reads and
 * writes them with one command each. A hash cannot expire single callers, so there are two of them, the current and the previous:
 *
 *   current  |=========|==========|======...      what is counted goes into the current hash
 *   previous    |    `-> previous |              it is looked for in the current one first, then in the previous one
 *               `- dropped when nothing in it matters any more; then the current one becomes the previous one
 *
 * A rule whose limit is changed, or differs between processes, has several versions (versions.ts). Every state ends
 * with a number that says which versions it holds.
 *
 * The field '@' of a hash holds numbers: when it was begun, until when anything in it matters, until when the previous one does,
 * when a caller was last reset; the mark of the rule's version, since when it counts, and the number that states end with; when
 * the partition was created, and when this field was last written; when the previous hash was begun; and how callers are spread
 * (see layout.ts): a code and a seed. The code has two digits more than processes know: the level at which the next
 * generation begins, and which of the two names of each shard is that of the current generation. Then follow the versions, if
 * there are several.
 * The field '!' .. caller holds when the caller was reset: charges before that are not refunded any more.
 * Other fields are callers.
 *
 * Redis frees a hash that expires in its main thread, some tenths of a microsecond for each caller, and all commands
 * wait meanwhile. So a hash that has become large is spread: from then on callers are written to shards, see spread.ts.
 *
 * Within a batch a state is text, as Redis has it, but for the one that a rule has open just then.
 */
export const STATES: string = `
if request.keep then return slow().keepShards(request.keep) end
local partitions, isStale, isLost = {}, false, false
for h, fields in ipairs(request.partitions) do
  local current, layout = KEYS[h * 2 - 1], request.layouts and request.layouts[h]
  -- a key of another type has no first field
  local raws
  if layout and floor(layout.code / 8) % 8 > 0 then
    raws = redis.pcall('HMGET', current, '@')
  else
    raws = redis.pcall('HMGET', current, '@', unpack(fields))
  end
  local about = raws[1]
  local partition = {
    current = current, previous = KEYS[h * 2], fields = fields, raws = raws,
    written = {}, n = 0, last = 0, gone = false, rules = 0, charge = false,
    begun = now, lasts = 0, previousLasts = 0, resetAt = -1, mark = 0, since = 0, version = 0, createdAt = now, saved = now,
    previousBegun = 0, code = 0, seed = 0, layout = layout, isSpread = false,
    about = about, isPreviousKnown = false, isKnown = true, isSpelled = true, isChanged = false
  }
  partitions[h] = partition
  if about and #about >= ABOUT_BYTES then
    partition.begun, partition.lasts, partition.previousLasts, partition.resetAt, partition.mark, partition.since, partition.version, partition.createdAt, partition.saved,
      partition.previousBegun, partition.code, partition.seed = fetch(ABOUT, about)
    if now < partition.saved then slow().stepBack(partition) end
    if partition.code % 4096 ~= (layout and layout.code or 0) or (layout and layout.seed ~= partition.seed) then
      isStale = true
    elseif now >= partition.previousLasts then
      partition.isPreviousKnown = true
      local age = now - partition.begun
      if age < 0 or age >= max(SECOND, partition.lasts - now) then isStale = slow().rotate(partition) or isStale end
    end
  else
    isStale = slow().begin(partition) or isStale
  end
  local createdAt = request.createdAt and request.createdAt[h] or 0
  if createdAt ~= 0 and createdAt ~= partition.createdAt then isLost = true end
  if layout and not isStale then slow().readShards(partition) end
end
if isLost then return slow().creationTimesOf(partitions) end
-- nothing is written that the next request would not find out for itself
if isStale then return slow().layoutsOf(partitions) end

-- charges callers of a rule that has one level of few numbers, and its partition for itself, as most have. One of them is
-- open at a time, until another is charged. Returns what the reply says of it, and, where it is kept, what was found;
-- nothing where the call does not pass at once.
local function charger(rule)
  local partition, level, version = rule.partition, rule.levels[1], rule.version
  local fields, raws, written, size = partition.fields, partition.raws, partition.written, level.slots + 1
  local pass = passes[level.name] or slow().passOf(level)
  local format, bytes = size == 3 and '<ddd' or formatOf(size), size * 8
  -- how many numbers there are if those that are not always stored are left out
  local core = (level.coreSlots or level.slots) + 1
  local isShort = core == 3
  local open, state, isChanged, idleAt = NO_KEY, {}, false, 0
  local n, last = 0, 0
  return function(key, cost, isKept)
    if key ~= open or key == NO_KEY then
      if isChanged then
        local text
        if isShort and (size == 3 or state[3] == 0) then
          text = pack('<ddd', state[1], state[2], version)
        elseif size == 11 then
          text = pack(
            '<ddddddddddd', state[1], state[2], state[3], state[4], state[5], state[6], state[7], state[8], state[9],
            state[10], version
          )
        elseif core < size and state[core] == 0 then
          state[core] = version
          text = pack(formatOf(core), unpack(state, 1, core))
        else
          state[size] = version
          text = pack(format, unpack(state, 1, size))
        end
        raws[open + 1] = text
        written[n + 1] = fields[open]
        n = n + 2
        written[n] = text
        if idleAt > last then last = idleAt end
        if partition.gone then partition.gone[open] = nil end
        isChanged = false
      elseif open == NO_KEY then
        n, last = partition.n, partition.last
      end
      open = key
      if key == NO_KEY then
        partition.n, partition.last = n, last
        return
      end
      local raw, known = raws[key + 1], nil
      if not (raw or partition.isPreviousKnown) then
        slow().readPrevious(partition)
        raw = raws[key + 1]
      end
      if not raw then
        for slot = 1, size - 1 do state[slot] = 0 end
        known = version
      elseif #raw == 24 and isShort then
        state[1], state[2], known = fetch('<ddd', raw)
        for slot = 3, size - 1 do state[slot] = 0 end
      elseif #raw == bytes and size == 11 then
        state[1], state[2], state[3], state[4], state[5], state[6], state[7], state[8], state[9], state[10], known =
          fetch('<ddddddddddd', raw)
      elseif #raw == bytes then
        state = { fetch(format, raw) }
        known = state[size]
      end
      if known ~= version then state = slow().open(rule, raw)[1] end
    end
    local first, second
    if isKept then
      first, second = state[1], state[2]
      if size > 3 then first = { unpack(state, 1, size - 1) } end
    end
    local remaining, nextIdleAt = pass(level, state, now, cost)
    if not remaining then return nil end
    isChanged = true
    idleAt = nextIdleAt
    local reset = nextIdleAt - now
    if remaining < REMAINING and reset < RESETS then return remaining * RESETS + reset, first, second end
    return -1, first, second, remaining, reset > NEVER and -1 or reset
  end
end

local function savePartition(partition)
  if partition.charge then partition.charge(NO_KEY) end
  local written, n = partition.written, partition.n
  local lastsLonger = partition.last > partition.lasts
  -- some more than is needed, so that it need not be said again for a while
  if lastsLonger then partition.lasts = min(now + (partition.last - now) * 1.25, now + LONGEST) end
  local isOutdated = n > 0 and now - partition.saved >= SECOND
  if lastsLonger or partition.isChanged or isOutdated then
    local isPlain = not (partition.spelling or partition.untils)
    local versions = isPlain and string.sub(partition.about, ABOUT_BYTES + 1) or slow().spell(partition)
    partition.about = pack(
      ABOUT, partition.begun, partition.lasts, partition.previousLasts, partition.resetAt, partition.mark, partition.since, partition.version, partition.createdAt, now,
      partition.previousBegun, partition.code, partition.seed
    ) .. versions
    written[n + 1], written[n + 2] = '@', partition.about
    n = n + 2
  end
  if partition.isSpread then
    if n > 0 then slow().saveShards(partition, n) end
  elseif n > 0 then
    local added = call('HSET', partition.current, unpack(written, 1, n))
    if added > 0 and call('HLEN', partition.current) > partitionCallers then spreadFurther(partition.current, partition.about) end
  end
  if lastsLonger then expire(partition.current, partition.lasts) end
  if partition.gone then slow().forget(partition) end
end
`
