import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'

it('a rule file that vanishes is reported, and its rules stay in force until it is back', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'diana-vanished-'))
  const config = join(folder, 'diana.yaml')
  await writeFile(config, 'rules: [{ id: all, limit: 1/h }]')
  const limiter = await createLimiter({ config })
  const call = { method: 'GET', path: '/' }
  try {
    expect((await limiter.check(call)).allowed).toBe(true)
    const reported = Promise.race([once(limiter.events, 'failure'), once(limiter.events, 'rejected')])
    await rm(config)
    await reported
    expect((await limiter.check(call)).allowed).toBe(false)
    await writeFile(config, 'rules: [{ id: all, limit: 2/h }]')
    await once(limiter.events, 'rules')
    expect([(await limiter.check(call)).allowed, (await limiter.check(call)).allowed]).toEqual([true, false])
  } finally {
    await limiter.close()
    await rm(folder, { recursive: true })
  }
})

it('a limiter whose rule file cannot be read is not made', async () => {
  await expect(createLimiter({ config: '/nowhere/diana.yaml' })).rejects.toThrow(
    'cannot be read (ENOENT); check the path',
  )
})
