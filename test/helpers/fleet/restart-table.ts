import { it, vi } from 'vitest'
import { playRestart, restartAlgorithms, ruleOf } from './restart-scene.ts'

vi.mock('node:timers/promises', async () => {
  const { virtualPause } = await import('./virtual-time.ts')
  return { setTimeout: virtualPause }
})

const MINUTE = 60_000
const limits = [
  { limit: '20/s', count: 20, periodMs: 1000, sizes: [2, 4, 8], algorithms: ['sliding-window'] },
  { limit: '300/m', count: 300, periodMs: MINUTE, sizes: [2, 4, 8], algorithms: restartAlgorithms },
  { limit: '600/10m', count: 600, periodMs: 10 * MINUTE, sizes: [2, 4], algorithms: ['sliding-window'] },
  { limit: '600/h', count: 600, periodMs: 60 * MINUTE, sizes: [2], algorithms: ['sliding-window'] },
]
const percent = (counts: readonly number[], of: readonly number[]): string =>
  counts.map((count, phase) => `${Math.round((count / of[phase]!) * 1000) / 10} %`).join(' / ')

// not a test: virtual time needs the mocks of a test runner, and `npm run long -- chaos-restart --virtual` runs this file alone
it('the restart table lists what is refused before, during and after, and what a healthy store refuses', async () => {
  for (const { limit, count, periodMs, sizes, algorithms } of limits)
    for (const algorithm of algorithms)
      for (const load of [0.67, 0.9, 1.5]) {
        const sizesWith = new Map<string, number[]>()
        for (const processes of sizes) {
          const rule = ruleOf(algorithm, count, periodMs, true)
          const { refused, healthy, offered, over } = await playRestart({ rule, processes, load, kind: 'killed' })
          const cells = [percent(refused, offered), percent(healthy, offered), over].join(' | ')
          sizesWith.set(cells, [...(sizesWith.get(cells) ?? []), processes])
        }
        for (const [cells, of] of sizesWith)
          process.stdout.write(
            `| ${algorithm} | ${limit} | ${Math.round(load * 100)} % | ${of.join(', ')} | ${cells} |\n`,
          )
      }
})
