// A job that must not send more than 20 messages a second, even if it could.
// Run it: npm run build && node examples/job/main.mjs
import { RateLimiter } from 'diana-limiter'

const pace = RateLimiter.create(20)
const messages = ['one', 'two', 'three', 'four', 'five']

const since = performance.now()
for (const message of messages) {
  const waitedMs = await pace.acquire()
  console.log(`sent ${message} after ${Math.round(waitedMs)} ms`)
}
export const tookMs = performance.now() - since

// a message that may be dropped does not wait
console.log((await pace.tryAcquire()) ? 'sent six' : 'dropped six')
