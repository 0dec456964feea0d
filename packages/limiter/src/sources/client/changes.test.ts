import { describe, expect, it } from 'vitest'
import { changes } from './changes.ts'

const signal = new AbortController().signal

async function messageOf(cause: unknown, secrets: readonly string[] = []): Promise<string> {
  // biome-ignore lint/correctness/useYield: it fails before it can
  async function* readings(): AsyncGenerator<never> {
    throw cause
  }
  const error = await changes(readings, signal, { name: 'center', secrets })
    .next()
    .catch(error => error as Error)
  expect(error).toMatchObject({ name: 'DianaError', code: 'SOURCE_FAILED' })
  return (error as Error).message
}

describe('changes', () => {
  it('changes reports documents that differ from the last', async () => {
    async function* readings() {
      for (const text of ['a', 'a', 'b', 'a', '', '']) yield { text, version: '' }
    }
    const texts: string[] = []
    for await (const { text } of changes(readings, signal, { name: 'center' })) texts.push(text)
    expect(texts).toEqual(['a', 'b', 'a', ''])
  })

  it('changes names the source and says what is wrong', async () => {
    expect(await messageOf(new Error('answered nonsense'))).toBe('center: answered nonsense')
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const said = 'center: cannot be read (ECONNREFUSED); check that it is there and lets Diana in'
    expect(await messageOf(refused)).toBe(said)
    expect(await messageOf(new TypeError('fetch failed', { cause: refused }))).toBe(said)
    expect(await messageOf('a word')).toBe('center: a word')
  })

  it('changes hides secrets, breaks no line and cuts long texts', async () => {
    expect(await messageOf(new Error('user:hunter2@host'), ['hunter2', ''])).toBe('center: user:***@host')
    expect(await messageOf(new Error('Bearer hun\nter2'), ['hun\nter2'])).toBe('center: Bearer ***')
    expect(await messageOf(new Error('one\r\n\u001b[31mtwo'))).toBe('center: one\\u000d\\u000a\\u001b[31mtwo')
    expect((await messageOf(new Error('x'.repeat(10_000)))).length).toBeLessThan(400)
  })
})
