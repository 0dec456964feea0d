import type { JSX } from 'preact'
import { viewMessages } from '../i18n/views/index.ts'
import { KeyText } from '../parts/key-text.tsx'

interface ListedCaller {
  readonly id: string
  readonly key: string
  readonly rule: string
}

interface ListedCallersProps<Row> {
  /** Names the table in the style sheet. */
  readonly kind: string
  readonly rows: readonly Row[]
  /** The columns beside the caller and the rule. */
  readonly columns: readonly { readonly title: string; readonly text: (row: Row) => string }[]
  /** Undefined if this token may not change anything. */
  readonly action: { readonly title: string; readonly onAct: (row: Row) => void } | undefined
}

/** Callers that operators or rules have blocked or given another limit, each with a button that ends it. */
export function ListedCallers<Row extends ListedCaller>(props: ListedCallersProps<Row>): JSX.Element {
  const { kind, rows, columns, action } = props
  const titles = viewMessages.value.columns
  return (
    <table class={`plain ${kind}`}>
      <thead>
        <tr>
          <th scope="col">{titles.key}</th>
          <th scope="col">{titles.rule}</th>
          {columns.map(({ title }) => (
            <th scope="col" key={title}>
              {title}
            </th>
          ))}
          {action && <th scope="col">{titles.action}</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map(row => (
          <tr key={row.id}>
            <td>
              <KeyText text={row.key} />
            </td>
            <td>{row.rule}</td>
            {columns.map(({ title, text }) => (
              <td key={title}>{text(row)}</td>
            ))}
            {action && (
              <td>
                <button type="button" class="quiet" onClick={() => action.onAct(row)}>
                  {action.title}
                </button>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
