import { statusError, type TextRequest } from './fetch-text.ts'
import { LARGEST_BYTES, tooLarge } from './text.ts'
import { TIMEOUT_MS } from './within.ts'

/** Reads an endless answer line by line and returns after `lastsMs`; throws if the server ends it first. */
export async function* fetchLines(
  url: URL,
  signal: AbortSignal,
  request: TextRequest & { readonly lastsMs: number },
): AsyncGenerator<string, void, undefined> {
  const { lastsMs, ...init } = request
  const controller = new AbortController()
  const stop = () => controller.abort()
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  let isOver = false
  const late = () => controller.abort(new Error(`gave no answer within ${TIMEOUT_MS / 1000} s`))
  let timer = setTimeout(late, TIMEOUT_MS)
  try {
    const response = await fetch(url, { ...init, signal: controller.signal, redirect: 'manual' })
    clearTimeout(timer)
    timer = setTimeout(() => {
      isOver = true
      stop()
    }, lastsMs)
    if (response.status !== 200) throw statusError(response)
    const decoder = new TextDecoder('utf-8', { fatal: true })
    let rest = ''
    for await (const chunk of response.body ?? []) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop()!
      if (rest.length > LARGEST_BYTES) throw tooLarge()
      yield* lines.filter(line => line.trim() !== '')
    }
    throw new Error('ended the stream of changes')
  } catch (error) {
    if (!isOver) throw error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
    stop()
  }
}
