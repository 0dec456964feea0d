import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import type { Algorithm } from '../../packages/limiter/src/algorithms/algorithm.ts'
import { algorithms } from '../../packages/limiter/src/algorithms/index.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'

const folder = mkdtempSync(join(tmpdir(), 'diana-create-'))
afterAll(() => rmSync(folder, { recursive: true }))

it('createLimiter applies a file once, with or without a byte order mark', async () => {
  const config = join(folder, 'diana.yaml')
  writeFileSync(config, '\uFEFFrules: [{ id: a, limit: 1/s }]')
  const limiter = await createLimiter({ config })
  const changed = once(limiter.events, 'rules')
  writeFileSync(config, 'rules: [{ id: b, limit: 1/s }]')
  await changed
  expect(limiter.status()).toMatchObject({ rules: [{ id: 'b' }], sources: [{ taken: 2 }] })
  await limiter.close()
})

it('createLimiter leaves no connection open if the rules cannot be counted in Redis', async () => {
  const server = createServer(socket => socket.resume()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const plain: Algorithm = {
    ...algorithms[0]!,
    meter: (limit, options) =>
      Object.defineProperty(algorithms[0]!.meter(limit, options), 'redis', { value: undefined }),
  }
  const redis = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
  const created = createLimiter({
    store: { redis },
    algorithms: [plain],
    rules: [{ id: 'a', limit: '1/s' }],
  })
  await expect(created).rejects.toThrow('rule "a": its algorithm cannot count in Redis; write count: local')
  // it is closed when its last connection is
  server.close()
  await once(server, 'close')
})
