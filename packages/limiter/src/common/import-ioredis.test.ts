import { afterEach, expect, it, vi } from 'vitest'
import { importIoredis } from './import-ioredis.ts'

afterEach(() => vi.doUnmock('ioredis'))

it('ioredis that is installed is loaded', async () => {
  const { Redis, Cluster } = await importIoredis()
  expect([typeof Redis, typeof Cluster]).toEqual(['function', 'function'])
})

it('ioredis that is not installed is reported with the remedy', async () => {
  vi.doMock('ioredis', () => {
    throw new Error('Cannot find package')
  })
  await expect(importIoredis()).rejects.toThrow(/^needs the ioredis package; run: npm install ioredis$/)
})

it('ioredis 4, which exports its class in another way, is reported with the remedy', async () => {
  vi.doMock('ioredis', () => ({ default: class {}, Redis: undefined, Cluster: undefined }))
  await expect(importIoredis()).rejects.toThrow('needs ioredis 5 or later, and an older one is installed')
})
