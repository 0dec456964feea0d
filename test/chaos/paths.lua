-- Calls for wrk: the paths of the rules in turn, on each connection about every 10 ms. Refusals are no failures.
local paths = { '/quota', '/window', '/bucket' }
local at = 0
local other = 0
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init()
  failed = 0
end

function delay()
  return 10
end

function request()
  at = at % #paths + 1
  return wrk.format('GET', paths[at])
end

function response(status)
  if status ~= 200 and status ~= 429 and status ~= 503 then failed = failed + 1 end
end

function done(summary, latency)
  for _, thread in ipairs(threads) do other = other + thread:get('failed') end
  local errors = summary.errors
  local lost = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format('MEASURED %d %d %d %f\n', summary.requests, lost, other, latency:percentile(99) / 1000))
end
