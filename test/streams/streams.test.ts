import { expect, it } from 'vitest'
import { measureStreams } from './measure.mjs'

it('200 idle event streams and WebSockets are served beside ordinary calls, and all end when their callers leave', async () => {
  const { served, open, ended, meanwhile } = await measureStreams({ streams: 200, slices: 1, calls: 100 })
  expect({ served, open, ended }).toEqual({ served: 200, open: 200, ended: 200 })
  expect(meanwhile[0]).toBeGreaterThan(0)
}, 60_000)
