import { describe, expect, it, vi } from 'vitest'
import { within } from './within.ts'

const { signal } = new AbortController()
const never = () => new Promise<never>(() => {})

describe('within', () => {
  it('within returns the result of the work, or throws its error', async () => {
    expect(await within(1000, signal, async () => 7)).toBe(7)
    await expect(within(1000, signal, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  })

  it('a timeout throws and aborts the work', async () => {
    let inner: AbortSignal | undefined
    const work = (signal: AbortSignal) => {
      inner = signal
      return never()
    }
    await expect(within(5, signal, work)).rejects.toThrow('gave no answer within 0.005 s')
    expect(inner?.aborted).toBe(true)
  })

  it('an aborted signal throws and aborts the work', async () => {
    const controller = new AbortController()
    let inner: AbortSignal | undefined
    const working = within(60_000, controller.signal, signal => {
      inner = signal
      return never()
    })
    controller.abort()
    await expect(working).rejects.toThrow('ended by its signal')
    expect(inner?.aborted).toBe(true)
  })

  it('within begins nothing once the signal has aborted', async () => {
    const work = vi.fn(never)
    await expect(within(1000, AbortSignal.abort(), work)).rejects.toThrow()
    expect(work).not.toHaveBeenCalled()
  })
})
