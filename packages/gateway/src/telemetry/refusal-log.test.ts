import { createLimiter } from 'diana-limiter'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { logRefusals } from './refusal-log.ts'

it('the refusal log has one line a second for each rule, with the number of suppressed ones and no caller names', async () => {
  const limiter = await createLimiter({
    rules: [
      { id: 'each', by: 'ip', limit: '1/m' },
      { id: 'all', match: { path: '/all' }, limit: '1/m' },
    ],
  })
  const lines: string[] = []
  let now = 0
  const stop = logRefusals(
    limiter,
    pino({ base: null, timestamp: false }, { write: line => void lines.push(line) }),
    () => now,
  )
  const ask = (ip: string, path = '/') => limiter.check({ method: 'GET', path, ip })
  await ask('203.0.113.7')
  for (; now < 2500; now += 100) await ask('203.0.113.7')
  await ask('203.0.113.8', '/all')
  await ask('203.0.113.9', '/all')
  const logged = lines.map(line => JSON.parse(line))
  expect(logged.map(({ rule, unsaid, msg }) => [rule, unsaid, msg])).toEqual([
    ['each', 0, 'refused'],
    ['each', 9, 'refused'],
    ['each', 9, 'refused'],
    ['all', 0, 'refused'],
  ])
  expect(logged[0].caller.ip).toMatch(/^203\.0\.\*\.\*/)
  expect(logged[3].caller).toEqual({})
  stop()
  await ask('203.0.113.7')
  expect(lines).toHaveLength(4)
  await limiter.close()
})
