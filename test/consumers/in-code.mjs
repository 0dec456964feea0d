// Uses the packed library without a rule file, so that neither YAML nor Redis is loaded. Prints "true true false, true".
import { createLimiter, RateLimiter } from 'diana-limiter'

async function main() {
  const limiter = await createLimiter({ rules: [{ id: 'all', limit: '2/m' }] })
  const call = { method: 'GET', path: '/', ip: '203.0.113.9', headers: {} }
  const verdicts = [await limiter.check(call), await limiter.check(call), await limiter.check(call)]
  const paced = await RateLimiter.create(5).tryAcquire()
  console.log(`${verdicts.map(({ allowed }) => allowed).join(' ')}, ${paced}`)
  await limiter.close()
}

main()
