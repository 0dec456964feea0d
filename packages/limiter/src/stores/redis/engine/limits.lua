-- Limits, as processes describe them. A limit has a mark, which says how its states are read, and a list of levels. A rule has one
-- limit; if its limit depends on the caller, also all others that it states.
--
-- A process sends the id of a rule's description; the description itself only when it is asked for, since the library keeps it.

-- The numbers that the states of a level are measured by, the period first.
local function scaleOf(level)
  if not level.scale then
    level.scale = {}
    for number in level.shape:gmatch('%S+') do level.scale[#level.scale + 1] = tonumber(number) end
    -- before it stands how many numbers a state has
    table.remove(level.scale, 1)
  end
  return level.scale
end

local function periodOf(level)
  return scaleOf(level)[1]
end

-- The functions of each algorithm, made when a rule first needs them.
local made = {}

local function movesOf(level)
  local moves = made[level.name]
  if not moves then
    moves = makers[level.name]()
    made[level.name] = moves
  end
  return moves
end

-- The versions of a rule that processes use, by the name in its keys: while a change reaches the processes one after the other there
-- are several. The library only remembers them, so that a caller is counted by all of them from its first call on.
local rulesById, limitsByMark, versionsByTag = memoryOf(5000), memoryOf(10000), memoryOf(5000)

local function versionOf(rule, tag)
  local versions = recall(versionsByTag, tag) or {}
  remember(versionsByTag, tag, versions)
  local oldest = 1
  for v, version in ipairs(versions) do
    if version.limit.mark == rule.limit.mark then
      version.limit = rule.limit
      return versions, version
    end
    if version.usedAt < versions[oldest].usedAt then oldest = v end
  end
  if #versions == MOST_VERSIONS then table.remove(versions, oldest) end
  local version = { limit = rule.limit, usedAt = now }
  versions[#versions + 1] = version
  return versions, version
end

local function limitOf(mark, levels)
  local isPlain = #levels == 1 and levels[1].slots > 0
  local limit = { mark = mark, levels = levels, moves = {}, slowest = huge, isPlain = isPlain }
  for l, level in ipairs(levels) do
    limit.moves[l] = movesOf(level)
    local perUs = limit.moves[l].perUs
    if perUs then limit.slowest = min(limit.slowest, perUs(level)) end
  end
  remember(limitsByMark, mark, limit)
  return limit
end

local function isStated(rule, mark)
  if not rule.stated then return true end
  for _, limit in ipairs(rule.stated) do
    if limit.mark == mark then return true end
  end
  return false
end

local function define(text)
  local spec = cjson.decode(text)
  local rule = { shadow = spec.shadow, isEager = spec.isEager, holds = false, versions = {}, stated = false }
  rule.limit = limitOf(spec.mark, spec.levels)
  if spec.limits then
    rule.stated = {}
    for s, stated in ipairs(spec.limits) do
      local isOwn = stated.mark == spec.mark
      rule.stated[s] = isOwn and rule.limit or limitOf(stated.mark, stated.levels)
    end
  end
  rule.isOutside = not isStated(rule, spec.mark)
  if not rule.stated then rule.versions, rule.version = versionOf(rule, spec.tag) end
  for _, level in ipairs(spec.levels) do rule.holds = rule.holds or level.needsRelease end
  remember(rulesById, spec.id, rule)
end

local function useVersion(rule)
  local versions, version = rule.versions, rule.version
  if versions.latest ~= version then
    local latest = versions.latest
    if latest and rule.since >= 0 then latest.usedAt = max(latest.usedAt, min(now, rule.since)) end
    versions.latest = version
  end
  version.usedAt = now
end

-- The rules of the run; the list is used again by the next run. Returns a reply that asks for descriptions, if some are not known.
local rules = {}

local function readRules(numbers, count)
  for a = 5, #args do define(args[a]) end
  local unknown
  for r = 1, count do
    local rule = recall(rulesById, numbers[1 + 3 * r])
    rules[r] = rule
    if not rule then
      unknown = unknown or { -3 }
      unknown[#unknown + 1] = r
    else
      rule.since, rule.countsSince = numbers[2 + 3 * r], numbers[3 + 3 * r]
      if rule.version then useVersion(rule) end
      if rule.holds then
        for _, level in ipairs(rule.limit.levels) do level.holder = tonumber(args[4]) end
      end
    end
  end
  return unknown
end

-- The limit with a mark, if any process has described it to this library.
local function limitWith(rule, mark)
  return rule.limit.mark == mark and rule.limit or recall(limitsByMark, mark)
end

-- A state that counts nothing; only a list that varies in length has its length beside it.
local function blank(slots)
  if slots == 0 then return { n = 0 } end
  local state = {}
  for slot = 1, slots do state[slot] = 0 end
  return state
end

local function isUsed(state)
  for slot = 1, state.n or #state do
    if state[slot] ~= 0 then return true end
  end
  return false
end

local function copyState(state)
  local copy = {}
  for name, number in pairs(state) do copy[name] = number end
  return copy
end

local function capacityOf(level, moves)
  return level.most or moves.remaining(level, blank(level.slots), now)
end
