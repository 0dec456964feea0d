/**
 * The part of the script that reads and writes states. All callers of a rule live in one hash, so that a batch reads and
 * writes them with one command each. A hash cannot forget single callers, so there are two of them, a young and an old:
 *
 *   young  |=========|==========|======...      what is counted goes into the young hash
 *   old         |    `----> old |                it is looked for in the young one first, then in the old one
 *               `- dropped when nothing in it matters any more; then the young one becomes the old one
 *
 * A rule whose limit is changed, or differs between processes, has several versions (redis-script-versions.ts). Every state ends
 * with a number that says which versions it holds.
 *
 * The field '@' of a hash holds numbers: when it was begun, until when anything in it matters, until when the old one does,
 * when a caller was last reset; the mark of the rule's version, since when it counts, and the number that states end with; when
 * the home was born, and when this field was last written; when the old hash was begun; and how callers are spread
 * (see redis-layout.ts): a code and a seed. The code has two digits more than processes know: the level at which the next
 * generation begins, and which of the two names of each part is that of the young generation. Then follow the versions, if
 * there are several.
 * The field '!' .. caller holds when the caller was reset: what was charged before is not given back any more.
 * Other fields are callers.
 *
 * Redis frees a hash that expires in its main thread, some tenths of a microsecond for each caller, and all commands
 * wait meanwhile. So a hash that has become large is spread: from then on callers are written to parts, see redis-script-spread.ts.
 *
 * Within a batch a state is text, as Redis has it, but for the one that a rule has open just then.
 */
export const STATES: string = `
if request.keep then return seldom().keepParts(request.keep) end
local homes, isStale, isLost = {}, false, false
for h, fields in ipairs(request.homes) do
  local young, layout = KEYS[h * 2 - 1], request.layouts and request.layouts[h]
  -- a key of another type has no first field
  local raws
  if layout and floor(layout.code / 8) % 8 > 0 then
    raws = redis.pcall('HMGET', young, '@')
  else
    raws = redis.pcall('HMGET', young, '@', unpack(fields))
  end
  local about = raws[1]
  local home = {
    young = young, old = KEYS[h * 2], fields = fields, raws = raws,
    written = {}, n = 0, last = 0, gone = false, rules = 0, charge = false,
    begun = now, lasts = 0, oldLasts = 0, resetAt = -1, mark = 0, since = 0, version = 0, born = now, saved = now,
    oldBegun = 0, code = 0, seed = 0, layout = layout, isSpread = false,
    about = about, isOldKnown = false, isKnown = true, isSpelled = true, isChanged = false
  }
  homes[h] = home
  if about and #about >= ABOUT_BYTES then
    home.begun, home.lasts, home.oldLasts, home.resetAt, home.mark, home.since, home.version, home.born, home.saved,
      home.oldBegun, home.code, home.seed = fetch(ABOUT, about)
    if now < home.saved then seldom().stepBack(home) end
    if home.code % 4096 ~= (layout and layout.code or 0) or (layout and layout.seed ~= home.seed) then
      isStale = true
    elseif now >= home.oldLasts then
      home.isOldKnown = true
      local age = now - home.begun
      if age < 0 or age >= max(SECOND, home.lasts - now) then isStale = seldom().growOld(home) or isStale end
    end
  else
    isStale = seldom().begin(home) or isStale
  end
  local born = request.born and request.born[h] or 0
  if born ~= 0 and born ~= home.born then isLost = true end
  if layout and not isStale then seldom().readParts(home) end
end
if isLost then return seldom().birthsOf(homes) end
-- nothing is written that the next request would not find out for itself
if isStale then return seldom().layoutsOf(homes) end

-- charges callers of a rule that has one level of few numbers, and its home for itself, as most have. One of them is
-- open at a time, until another is charged. Returns what the reply says of it, and, where it is kept, what was found;
-- nothing where the call does not pass at once.
local function charger(rule)
  local home, level, version = rule.home, rule.levels[1], rule.version
  local fields, raws, written, size = home.fields, home.raws, home.written, level.slots + 1
  local pass = passes[level.name] or seldom().passOf(level)
  local format, bytes = size == 3 and '<ddd' or formatOf(size), size * 8
  -- how many numbers there are if those that are not always stored are left out
  local core = (level.coreSlots or level.slots) + 1
  local isShort = core == 3
  local open, state, isChanged, idleAt = NOBODY, {}, false, 0
  local n, last = 0, 0
  return function(key, cost, isKept)
    if key ~= open or key == NOBODY then
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
        if home.gone then home.gone[open] = nil end
        isChanged = false
      elseif open == NOBODY then
        n, last = home.n, home.last
      end
      open = key
      if key == NOBODY then
        home.n, home.last = n, last
        return
      end
      local raw, known = raws[key + 1], nil
      if not (raw or home.isOldKnown) then
        seldom().readOld(home)
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
      if known ~= version then state = seldom().open(rule, raw)[1] end
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

local function saveHome(home)
  if home.charge then home.charge(NOBODY) end
  local written, n = home.written, home.n
  local lastsLonger = home.last > home.lasts
  -- some more than is needed, so that it need not be said again for a while
  if lastsLonger then home.lasts = min(now + (home.last - now) * 1.25, now + LONGEST) end
  local isOutdated = n > 0 and now - home.saved >= SECOND
  if lastsLonger or home.isChanged or isOutdated then
    local isPlain = not (home.spelling or home.untils)
    local versions = isPlain and string.sub(home.about, ABOUT_BYTES + 1) or seldom().spell(home)
    home.about = pack(
      ABOUT, home.begun, home.lasts, home.oldLasts, home.resetAt, home.mark, home.since, home.version, home.born, now,
      home.oldBegun, home.code, home.seed
    ) .. versions
    written[n + 1], written[n + 2] = '@', home.about
    n = n + 2
  end
  if home.isSpread then
    if n > 0 then seldom().saveParts(home, n) end
  elseif n > 0 then
    local added = call('HSET', home.young, unpack(written, 1, n))
    if added > 0 and call('HLEN', home.young) > homeCallers then spreadFurther(home.young, home.about) end
  end
  if lastsLonger then expire(home.young, home.lasts) end
  if home.gone then seldom().forget(home) end
end
`
