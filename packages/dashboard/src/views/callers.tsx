import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { Problem } from '../api/problem.ts'
import type { Block, Caller } from '../api/types.ts'
import { rules, second } from '../figures/live.ts'
import { Answered, problemOf, Refusal, useAnswer } from '../parts/answer.tsx'
import { KeyText, makeVisible } from '../parts/key-text.tsx'
import { formatMoment, formatNumber } from '../words/format.ts'
import { words } from '../words/index.ts'

const REFRESH_SECONDS = 2
const PERIODS = ['1m', '10m', '1h', '1d']

/** Who is refused most, and what to do about it. */
export function Callers(): JSX.Element {
  const { callers: told } = words.value
  const [unmask, setUnmask] = useState(false)
  const [said, setSaid] = useState('')
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  const turn = Math.floor(second.value / REFRESH_SECONDS)
  const callers = useAnswer(() => api.callers(unmask), [unmask, turn])
  const paths = useAnswer(() => api.paths(), []).answer
  const canBlock = paths?.has('/api/v1/blocks') === true
  const canReset = paths?.has('/api/v1/reset') === true
  const blocks = useAnswer(async () => (canBlock ? api.blocks() : []), [turn, canBlock])
  const act = (action: Promise<unknown>, sentence: string) =>
    action.then(
      () => {
        setProblem(undefined)
        setSaid(sentence)
        callers.again()
        blocks.again()
      },
      error => setProblem(problemOf(error)),
    )
  const name = (key: string) => makeVisible(key).slice(0, 60)
  return (
    <>
      <p class="intro">{told.intro}</p>
      <div class="actions">
        <button type="button" aria-pressed={unmask} onClick={() => setUnmask(!unmask)}>
          {unmask ? told.mask : told.unmask}
        </button>
        {!unmask && <p class="hush">{told.masked}</p>}
        <p role="status" class="said">
          {said}
        </p>
      </div>
      {problem && <Refusal problem={problem} />}
      <section class="panel" aria-label={words.value.views.callers}>
        <Answered asked={callers}>
          {list =>
            list.length === 0 ? (
              <p class="empty">{told.none}</p>
            ) : (
              <CallerTable
                callers={list}
                onBlock={canBlock && (({ id, key }, period) => act(api.block(id, period), told.blocked(name(key))))}
                onReset={canReset && (({ id, key }) => act(api.reset(id), told.resetDone(name(key))))}
              />
            )
          }
        </Answered>
      </section>
      {canBlock && (
        <section class="panel" aria-label={told.blocks}>
          <div class="panel-head">
            <h2>{told.blocks}</h2>
          </div>
          <Answered asked={blocks}>
            {list =>
              list.length === 0 ? (
                <p class="empty">{told.noBlocks}</p>
              ) : (
                <BlockTable blocks={list} onLift={({ id, key }) => act(api.unblock(id), told.resetDone(name(key)))} />
              )
            }
          </Answered>
        </section>
      )}
    </>
  )
}

interface CallerTableProps {
  readonly callers: readonly Caller[]
  /** false where the gateway cannot. */
  readonly onBlock: ((caller: Caller, period: string) => void) | false
  readonly onReset: ((caller: Caller) => void) | false
}

function CallerTable({ callers, onBlock, onReset }: CallerTableProps): JSX.Element {
  const { columns, callers: told } = words.value
  const canAct = onBlock !== false || onReset !== false
  const most = Math.max(1, ...callers.map(({ refused }) => refused))
  return (
    <table class="plain callers">
      <thead>
        <tr>
          <th scope="col">{columns.key}</th>
          <th scope="col">{columns.rule}</th>
          <th scope="col" class="numeric">
            {columns.refused}
          </th>
          <th scope="col">{columns.last}</th>
          {canAct && <th scope="col">{columns.action}</th>}
        </tr>
      </thead>
      <tbody>
        {callers.map(caller => (
          <tr key={caller.id}>
            <td>
              <KeyText text={isOfAll(caller.rule) ? '' : caller.key} />
              {caller.blockedUntil !== undefined && (
                <small class="blocked">{told.blockedUntil(formatMoment(caller.blockedUntil))}</small>
              )}
            </td>
            <td>{caller.rule}</td>
            <td class="numeric">
              <span class="weight" style={{ inlineSize: `${((caller.refused / most) * 100).toFixed(1)}%` }} />
              <span data-refused>{formatNumber(caller.refused)}</span>
              {caller.error > 0 && <small> ±{formatNumber(caller.error)}</small>}
            </td>
            <td>{formatMoment(caller.lastAt)}</td>
            {canAct && (
              <td>
                <Deeds
                  onBlock={onBlock && (period => onBlock(caller, period))}
                  onReset={onReset && (() => onReset(caller))}
                />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Whether a rule counts all calls together, so that there is no caller to name. */
function isOfAll(rule: string): boolean {
  return rules.value?.find(({ id }) => id === rule)?.by.length === 0
}

interface DeedsProps {
  readonly onBlock: ((period: string) => void) | false
  readonly onReset: (() => void) | false
}

function Deeds({ onBlock, onReset }: DeedsProps): JSX.Element {
  const { callers: told } = words.value
  const [period, setPeriod] = useState(PERIODS[1]!)
  return (
    <span class="deeds">
      {onBlock && (
        <>
          <select aria-label={told.blockFor} value={period} onChange={event => setPeriod(event.currentTarget.value)}>
            {PERIODS.map(one => (
              <option key={one}>{one}</option>
            ))}
          </select>
          <button type="button" class="stern" onClick={() => onBlock(period)}>
            {told.block}
          </button>
        </>
      )}
      {onReset && (
        <button type="button" class="quiet" title={told.resetMeans} onClick={onReset}>
          {told.reset}
        </button>
      )}
    </span>
  )
}

function BlockTable({ blocks, onLift }: { blocks: readonly Block[]; onLift: (block: Block) => void }): JSX.Element {
  const { columns, callers: told } = words.value
  return (
    <table class="plain blocks">
      <thead>
        <tr>
          <th scope="col">{columns.key}</th>
          <th scope="col">{columns.rule}</th>
          <th scope="col">{columns.until}</th>
          <th scope="col">{columns.action}</th>
        </tr>
      </thead>
      <tbody>
        {blocks.map(block => (
          <tr key={block.id}>
            <td>
              <KeyText text={block.key} />
            </td>
            <td>{block.rule}</td>
            <td>{formatMoment(block.until)}</td>
            <td>
              <button type="button" class="quiet" onClick={() => onLift(block)}>
                {told.lift}
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
