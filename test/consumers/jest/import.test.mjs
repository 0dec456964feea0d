/* global test, expect */
import { createLimiter } from 'diana-limiter'

test('a module that is imported refuses the second call', async () => {
  const limiter = await createLimiter({ rules: [{ id: 'all', limit: '1/m' }] })
  const call = { method: 'GET', path: '/', ip: '203.0.113.9', headers: {} }
  expect([(await limiter.check(call)).allowed, (await limiter.check(call)).allowed]).toEqual([true, false])
  await limiter.close()
})
