import { DianaError } from '../../errors.ts'
import { cutText, escapeText } from '../../rules/show.ts'
import type { SourceDocument } from '../source.ts'

/**
 * Turns readings into what a source promises: only changes, an end without a throw by the signal, and errors that name
 * the source and show none of its secrets.
 */
export async function* changes(
  readings: (signal: AbortSignal) => AsyncIterable<SourceDocument>,
  signal: AbortSignal,
  source: { readonly name: string; readonly secrets?: readonly string[] },
): AsyncGenerator<SourceDocument, void, undefined> {
  if (signal.aborted) return
  let last: SourceDocument | undefined
  try {
    for await (const document of readings(signal)) {
      if (signal.aborted) return
      if (document.text === last?.text && document.isMissing === last.isMissing) continue
      last = document
      yield document
    }
  } catch (cause) {
    if (signal.aborted) return
    throw reportFailure(cause, source, 'read')
  }
}

/** Reports what went wrong with a source; the cause is not passed on: clients put credentials into errors that end up in logs. */
export function reportFailure(
  cause: unknown,
  source: { readonly name: string; readonly secrets?: readonly string[] },
  verb: 'read' | 'written',
): DianaError {
  const what = (source.secrets ?? []).reduce(hide, explain(cause, verb))
  return new DianaError('SOURCE_FAILED', `${source.name}: ${cutText(escapeText(what), 300)}`)
}

function explain(cause: unknown, verb: string): string {
  if (!(cause instanceof Error)) return String(cause)
  // fetch wraps what went wrong on the wire
  const inner = cause instanceof TypeError && cause.cause instanceof Error ? cause.cause : cause
  const { code, message }: NodeJS.ErrnoException = inner
  if (inner === cause && !/^E[A-Z]{3,}$/.test(code ?? '')) return message
  return `cannot be ${verb} (${code ?? message}); check that it is there and lets Diana in`
}

function hide(text: string, secret: string): string {
  return secret === '' ? text : text.replaceAll(secret, '***')
}
