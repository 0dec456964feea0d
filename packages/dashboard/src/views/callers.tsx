import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api, type CallerQuestion } from '../api/api.ts'
import type { Caller } from '../api/generated.ts'
import type { Problem } from '../api/problem.ts'
import { mayChange } from '../api/session.ts'
import { BlockDialog, BlockPanel, nameOf } from '../callers/blocks.tsx'
import { CallerTable } from '../callers/caller-table.tsx'
import { useHeldOrder } from '../callers/held-order.ts'
import { type Act, TermsDialog, TermsPanel } from '../callers/terms.tsx'
import { paths, rules, second } from '../figures/live.ts'
import { formatNumber } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { Answered, problemOf, Refusal, useAnswer } from '../parts/answer.tsx'
import { goTo, route } from '../route.ts'
import { RuleChoice } from '../rules/rule-choice.tsx'

const REFRESH_SECONDS = 2
const TOP = 1000

/** Shows every caller of every rule: their share of it, and the actions for each. */
export function Callers(): JSX.Element {
  const { callers: told } = viewMessages.value
  const [unmask, setUnmask] = useState(false)
  const [show, setShow] = useState<CallerQuestion['show']>('all')
  const [sort, setSort] = useState<CallerQuestion['sort']>('refused')
  const [search, setSearch] = useState('')
  const [said, setSaid] = useState('')
  const [blocking, setBlocking] = useState<Caller | undefined>(undefined)
  const [changing, setChanging] = useState<Caller | undefined>(undefined)
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  const rule = route.value.rest[0] ?? ''
  const turn = Math.floor(second.value / REFRESH_SECONDS)
  const question: CallerQuestion = { unmask, show, sort, search: search.trim(), rule, top: TOP }
  const callers = useAnswer(() => api.callers(question), [JSON.stringify(question), turn])
  const canBlock = paths.value?.has('/api/v1/blocks') === true
  const canReset = paths.value?.has('/api/v1/reset') === true && mayChange.value
  const blocks = useAnswer(async () => (canBlock ? api.blocks(unmask) : []), [turn, canBlock, unmask])
  const held = useHeldOrder(callers.answer ?? [], JSON.stringify(question))
  const canOverride = paths.value?.has('/api/v1/overrides') === true
  const overrides = useAnswer(async () => (canOverride ? api.overrides() : []), [turn, canOverride])
  const act: Act = (action, sentence) =>
    void action.then(
      () => {
        setProblem(undefined)
        setSaid(typeof sentence === 'string' ? sentence : sentence())
        callers.again()
        blocks.again()
        overrides.again()
      },
      error => setProblem(problemOf(error)),
    )
  return (
    <>
      <p class="intro">{told.intro}</p>
      <div class="actions filters">
        <input
          type="search"
          placeholder={told.search}
          aria-label={told.search}
          value={search}
          onInput={event => setSearch(event.currentTarget.value)}
        />
        <RuleChoice
          rules={rules.value ?? []}
          chosen={rule}
          onChoose={id => goTo('callers', ...(id === '' ? [] : [id]))}
        />
        <select
          aria-label={told.show}
          value={show}
          onChange={event => setShow(event.currentTarget.value as typeof show)}
        >
          <option value="all">{told.showAll}</option>
          <option value="refused">{told.showRefused}</option>
        </select>
        <select
          aria-label={told.sort}
          value={sort}
          onChange={event => setSort(event.currentTarget.value as typeof sort)}
        >
          <option value="refused">{told.sortRefused}</option>
          <option value="calls">{told.sortCalls}</option>
          <option value="used">{told.sortUsed}</option>
        </select>
        <button type="button" aria-pressed={unmask} onClick={() => setUnmask(!unmask)}>
          {unmask ? told.mask : told.unmask}
        </button>
        <p role="status" class="said">
          {said}
        </p>
      </div>
      {problem && <Refusal problem={problem} />}
      <section class="panel" aria-label={viewMessages.value.views.callers} {...held.handlers}>
        <Answered asked={callers}>
          {() =>
            held.rows.length === 0 ? (
              <p class="empty">{search === '' ? told.none : told.notFound}</p>
            ) : (
              <>
                <p class="hush">{told.rows(formatNumber(held.rows.length))}</p>
                <CallerTable
                  callers={held.rows}
                  onBlock={canBlock && mayChange.value ? setBlocking : undefined}
                  onTerms={canOverride && mayChange.value ? setChanging : undefined}
                  onReset={canReset ? ({ id, key }) => act(api.reset(id), told.resetDone(nameOf(key))) : undefined}
                />
              </>
            )
          }
        </Answered>
      </section>
      {canBlock && (
        <Answered asked={blocks}>
          {list => (
            <BlockPanel
              blocks={list}
              onLift={
                mayChange.value
                  ? ({ id, key, rule: by }) => act(api.unblock(id), told.lifted(nameOf(key), by))
                  : undefined
              }
              onBlock={
                mayChange.value
                  ? (by, key, period) => act(api.blockKey(by, key, period), told.blocked(nameOf(key)))
                  : undefined
              }
            />
          )}
        </Answered>
      )}
      {canOverride && (
        <Answered asked={overrides}>
          {list => <TermsPanel overrides={list} act={mayChange.value ? act : undefined} />}
        </Answered>
      )}
      {changing && <TermsDialog caller={changing} act={act} onBack={() => setChanging(undefined)} />}
      {blocking && (
        <BlockDialog
          caller={blocking}
          onBack={() => setBlocking(undefined)}
          onBlock={period => {
            act(api.block(blocking.id, period), told.blocked(nameOf(blocking.key)))
            setBlocking(undefined)
          }}
        />
      )}
    </>
  )
}
