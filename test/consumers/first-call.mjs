// Decides the first call of the packed library, and prints the modules of Node that cost a start most and were loaded. Prints "".
import { createLimiter } from 'diana-limiter'
import { rateLimit } from 'diana-limiter/express'

const heavy = ['crypto', 'tls', 'zlib', 'dns', 'dns/promises', 'http2', 'worker_threads', 'child_process']
const limit = rateLimit({ limit: '2/m' })
await limit.limiter
const limiter = await createLimiter({ rules: [{ id: 'all', limit: '2/m' }] })
await limiter.check({ method: 'GET', path: '/', ip: '203.0.113.9' })
console.log(heavy.filter(name => process.moduleLoadList.includes(`NativeModule ${name}`)).join(' '))
await limiter.close()
await limit.close()
