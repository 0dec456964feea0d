-- Calls for wrk: the paths of the rules in turn, on each connection about every 10 ms, each with the moment of its start by the clock
-- of all processes of this machine. Refusals are no failures.
local ffi = require('ffi')
ffi.cdef('typedef struct { long s; long ns; } moment; int clock_gettime(int clock, moment *at);')
local CLOCK_MONOTONIC = 1
local moment = ffi.new('moment')
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
  ffi.C.clock_gettime(CLOCK_MONOTONIC, moment)
  local ms = tonumber(moment.s) * 1000 + tonumber(moment.ns) / 1e6
  return wrk.format('GET', paths[at], { ['x-started'] = string.format('%.3f', ms) })
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
