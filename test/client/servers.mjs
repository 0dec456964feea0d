// Servers with limits, each as the one it is named for reports them. `serve` answers one request at a moment.
import { rateLimit } from 'diana-limiter/fetch'

/** A server of Diana itself, by one of its algorithms and in one of its styles of headers. */
function diana({ limit, windowMs, algorithm, headers, ...more }) {
  return clock => {
    const given = { limit: `${limit}/${windowMs}ms`, algorithm, headers, status: 429, clock, by: () => 'all', ...more }
    const filter = rateLimit(given)
    const serve = filter.wrap(() => new Response('ok'))
    return { serve: request => serve(request), close: () => filter.close(), ready: () => filter.limiter }
  }
}

/** As api.github.com: windows of an hour that begin with the first call; the reset is a whole second since 1970. */
function github({ limit, windowMs }) {
  return clock => {
    let [resetAt, used] = [0, 0]
    return {
      serve: async () => {
        const now = clock()
        if (now >= resetAt) [resetAt, used] = [Math.ceil((now + windowMs) / 1000) * 1000, 0]
        const passes = used < limit
        if (passes) used++
        const headers = {
          date: new Date(now).toUTCString(),
          'x-ratelimit-limit': `${limit}`,
          'x-ratelimit-remaining': `${limit - used}`,
          'x-ratelimit-used': `${used}`,
          'x-ratelimit-reset': `${resetAt / 1000}`,
          'x-ratelimit-resource': 'core',
        }
        return new Response(passes ? '{}' : '{"message":"API rate limit exceeded"}', {
          status: passes ? 200 : 429,
          headers,
        })
      },
    }
  }
}

/** As api.openai.com: a bucket that refills all the time; the reset is how long until it is full, such as `6m0s` or `12ms`. */
function openai({ limit, windowMs }) {
  return clock => {
    let [level, at] = [limit, clock()]
    return {
      serve: async () => {
        const now = clock()
        level = Math.min(limit, level + ((now - at) * limit) / windowMs)
        at = now
        const passes = level >= 1
        if (passes) level--
        const resetMs = Math.ceil(((limit - level) * windowMs) / limit)
        const headers = {
          'x-ratelimit-limit-requests': `${limit}`,
          'x-ratelimit-remaining-requests': `${Math.floor(level)}`,
          'x-ratelimit-reset-requests': goDuration(resetMs),
          ...(passes ? {} : { 'retry-after-ms': `${Math.ceil(((1 - level) * windowMs) / limit)}` }),
        }
        return new Response('{}', { status: passes ? 200 : 429, headers })
      },
    }
  }
}

/** As the REST API of Shopify: a bucket that leaks, of which an answer reports the level and not the leak. */
function shopify({ limit, windowMs }) {
  return clock => {
    let [used, at] = [0, clock()]
    return {
      serve: async () => {
        const now = clock()
        used = Math.max(0, used - ((now - at) * limit) / windowMs)
        at = now
        const passes = used + 1 <= limit
        if (passes) used++
        const headers = {
          'x-shopify-shop-api-call-limit': `${Math.ceil(used)}/${limit}`,
          ...(passes ? {} : { 'retry-after': '2.0' }),
        }
        return new Response('{}', { status: passes ? 200 : 429, headers })
      },
    }
  }
}

function goDuration(ms) {
  if (ms < 1000) return `${ms}ms`
  const seconds = Math.ceil(ms / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}

const minute = { limit: 600, windowMs: 60_000 }

/** `burst` is what may be used beside what refills; `isFixed` says that all of it comes at once. */
export const servers = {
  'Diana, sliding window, draft 11': { ...minute, make: diana({ ...minute }) },
  'Diana, sliding window, draft 7': { ...minute, make: diana({ ...minute, headers: 'draft-7' }) },
  'Diana, fixed window, draft 6': {
    ...{ ...minute, isFixed: true },
    make: diana({ ...minute, algorithm: 'fixed-window', headers: 'draft-6' }),
  },
  'Diana, token bucket, X-RateLimit': {
    ...{ ...minute, burst: 600 },
    make: diana({ ...minute, algorithm: 'token-bucket', headers: 'legacy' }),
  },
  'as GitHub': { limit: 5000, windowMs: 3_600_000, isFixed: true, make: github({ limit: 5000, windowMs: 3_600_000 }) },
  'as OpenAI': { limit: 500, windowMs: 60_000, burst: 500, make: openai({ limit: 500, windowMs: 60_000 }) },
  'as Shopify': { limit: 40, windowMs: 20_000, burst: 40, make: shopify({ limit: 40, windowMs: 20_000 }) },
}
