import type { JSX } from 'preact'
import { api } from '../api/api.ts'
import type { Preview, Split, Where } from '../api/generated.ts'
import { formatNumber } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { useAnswer } from '../parts/answer.tsx'

/** Shows the effect that a text would have had on the calls of the last minutes. */
export function Foretold({ where, text }: { where: Where; text: string }): JSX.Element {
  const { editor: texts, loading } = viewMessages.value
  const { answer, problem } = useAnswer(() => api.preview(where, text), [where, text])
  return (
    <section aria-label={texts.preview} class="foretold">
      <h3>{texts.preview}</h3>
      {problem && (
        <p class="hush">
          {texts.previewFailed} {problem.message}
        </p>
      )}
      {!problem && answer === undefined && <p class="hush">{loading}</p>}
      {answer && (answer.calls === 0 ? <p class="empty">{texts.previewNone}</p> : <Effects preview={answer} />)}
    </section>
  )
}

function Effects({ preview }: { preview: Preview }): JSX.Element {
  const { editor: texts, columns } = viewMessages.value
  const changed = preview.rules.filter(({ before, after }) => before.refused !== after.refused)
  return (
    <>
      <p class="hush">
        {texts.previewOf(formatNumber(preview.calls))}
        {preview.sampled && ` (${texts.previewSampled})`}
      </p>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">{columns.rule}</th>
            <th scope="col" class="numeric">
              {texts.before}
            </th>
            <th scope="col" class="numeric">
              {texts.after}
            </th>
            <th scope="col" class="numeric">
              ±
            </th>
          </tr>
        </thead>
        <tbody>
          {changed.slice(0, 100).map(({ id, before, after }) => (
            <Effect key={id} title={id} before={before} after={after} />
          ))}
          <Effect title={texts.total} before={preview.total.before} after={preview.total.after} />
        </tbody>
      </table>
    </>
  )
}

function Effect({ title, before, after }: { title: string; before: Split; after: Split }): JSX.Element {
  const { editor: texts } = viewMessages.value
  const difference = after.refused - before.refused
  const sign = difference > 0 ? '+' : ''
  return (
    <tr>
      <th scope="row">{title}</th>
      <td class="numeric">{formatNumber(before.refused)}</td>
      <td class="numeric">{formatNumber(after.refused)}</td>
      <td class={`numeric ${difference > 0 ? 'more' : difference < 0 ? 'fewer' : ''}`}>
        {difference === 0 ? texts.same : `${sign}${formatNumber(difference)}`}
      </td>
    </tr>
  )
}
