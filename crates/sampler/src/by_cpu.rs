//! Events that are bound to CPUs and see whatever runs there.
//!
//! Each CPU has two: one that never counts and only tells of tasks and their memory, which owns
//! the ring, and one that samples. So sampling begins when everything else is set up, and nothing that
//! happens meanwhile is missed.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flame_profile::{Cpu, Nanos};

use crate::cpus;
use crate::descriptor::Descriptor;
use crate::error::{Refusal, Refused, SamplerError};
use crate::losses::Losses;
use crate::open::{Plan, Records, Who};
use crate::rings::{Rings, is_offline, with_count};

/// The longest tick of a kernel's clock, and a bit.
const TICK: Duration = Duration::from_millis(12);

/// Of so many looks for other CPUs, one looks for events that ended besides: to read those of all CPUs disturbs them.
const SELDOM: u32 = 10;

/// The sampling events of all CPUs.
#[derive(Debug)]
pub(crate) struct CpuSamplers {
    who: Who,
    /// In the order of the rings.
    samplers: Vec<Arc<Descriptor>>,
    /// Whether they are open, but do not sample yet.
    wait: bool,
    /// Further events: those of CPUs that came back.
    side_band: Vec<Arc<Descriptor>>,
    online: BTreeSet<Cpu>,
    /// How often it was looked whether others came.
    looks: u32,
    /// CPUs whose events were refused, until they come online once more.
    refused: BTreeSet<Cpu>,
    /// What was lost by events that are closed already, and what they counted.
    closed: Losses,
}

impl CpuSamplers {
    /// Opens the events that tell of tasks and memory; a CPU that goes offline meanwhile is left out.
    pub(crate) fn open(
        who: Who,
        cpus: &[Cpu],
        plan: &Plan,
        rings: &mut Rings,
    ) -> Result<CpuSamplers, SamplerError> {
        let mut all = CpuSamplers {
            who,
            samplers: Vec::with_capacity(cpus.len()),
            wait: false,
            side_band: Vec::new(),
            online: cpus.iter().copied().collect(),
            looks: 0,
            refused: BTreeSet::new(),
            closed: Losses::default(),
        };
        for cpu in cpus {
            all.add_side_band(*cpu, plan, rings)?;
        }
        Ok(all)
    }

    /// Opens the events that sample, for [`CpuSamplers::start_at`]: while other programs open or close
    /// events, the kernel may take a tenth of a second to open one, which is a burst's whole life.
    pub(crate) fn prepare(&mut self, plan: &Plan, rings: &mut Rings) -> Result<(), SamplerError> {
        self.wait = true;
        let cpus: Vec<Cpu> = rings.cpus().collect();
        cpus.into_iter().try_for_each(|cpu| self.add_sampler(cpu, plan, rings))
    }

    /// Starts the events that were prepared.
    pub(crate) fn start_at(&mut self, period: u64) -> io::Result<()> {
        self.wait = false;
        self.samplers.iter().try_for_each(|sampler| {
            sampler.set_period(period)?;
            sampler.enable()
        })
    }

    /// A CPU that is offline gets no event.
    fn add_side_band(
        &mut self,
        cpu: Cpu,
        plan: &Plan,
        rings: &mut Rings,
    ) -> Result<(), SamplerError> {
        let side_band = match plan.open(&self.who, cpu, Records::SideBand) {
            Err(error) if is_offline(&error) => return Ok(()),
            result => result.map_err(|error| self.refusal(error, plan))?,
        };
        self.side_band.extend(rings.add(Arc::new(side_band), cpu)?);
        Ok(())
    }

    /// Opens the event that samples a CPU.
    pub(crate) fn add_sampler(
        &mut self,
        cpu: Cpu,
        plan: &Plan,
        rings: &mut Rings,
    ) -> Result<(), SamplerError> {
        let mut plan = plan.clone();
        plan.waits = self.wait;
        let sampler = plan.open(&self.who, cpu, Records::Samples);
        let sampler = sampler.map_err(|error| self.refusal(error, &plan))?;
        let sampler = rings.add(Arc::new(sampler), cpu)?;
        let (Some(position), Some(sampler)) = (rings.position(cpu), sampler) else {
            return Ok(());
        };
        match self.samplers.get_mut(position) {
            Some(place) => *place = sampler,
            None => self.samplers.push(sampler),
        }
        Ok(())
    }

    fn refusal(&self, error: io::Error, plan: &Plan) -> SamplerError {
        let open = 2 * self.samplers.len();
        with_count(plan.refusal(error, &self.who), open)
    }

    /// The sampling events, in the order of the rings.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Arc<Descriptor>> {
        self.samplers.iter()
    }

    /// The sampling event of the ring at that position.
    pub(crate) fn event(&self, position: usize) -> Option<&Arc<Descriptor>> {
        self.samplers.get(position)
    }

    /// Whether timers run whatever task there is: not those of a control group's events.
    pub(crate) fn timer_always_runs(&self) -> bool {
        !matches!(self.who, Who::Cgroup(_))
    }

    /// All events but those that own rings, and what they write.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Descriptor, Records)> {
        let samplers = self.samplers.iter().map(|sampler| (sampler.as_ref(), Records::Samples));
        samplers.chain(self.side_band.iter().map(|event| (event.as_ref(), Records::SideBand)))
    }

    /// What events saw too little that are closed already.
    pub(crate) fn closed(&self) -> Losses {
        self.closed
    }

    /// Whether the events that sample are open.
    pub(crate) fn is_sampling(&self) -> bool {
        !self.samplers.is_empty()
    }

    /// How often the sampled event happened on all CPUs.
    pub(crate) fn count(&self, plan: &Plan) -> u64 {
        self.closed.count
            + self.samplers.iter().map(|sampler| plan.read(sampler).count).sum::<u64>()
    }

    /// Whether the kernel would let this process, with the rights that it has now, open the events
    /// of a CPU once more.
    pub(crate) fn may_reopen(&self, plan: &Plan, cpu: Cpu) -> bool {
        let opened = plan.open(&self.who, cpu, Records::Samples);
        !opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Which of these CPUs have a sampler that has ended: it is enabled no longer than a moment ago. Such a CPU was offline and
    /// is back already, as all but one are after the machine was suspended.
    fn ended(&self, cpus: &BTreeSet<Cpu>, plan: &Plan, rings: &Rings) -> Vec<Cpu> {
        // Those of a control group are not enabled either while it does not run.
        if self.wait || !self.timer_always_runs() {
            return Vec::new();
        }
        let enabled = |cpu: Cpu| {
            let sampler = self.samplers.get(rings.position(cpu)?)?;
            Some((cpu, plan.read(sampler).enabled))
        };
        let before: Vec<_> = cpus.iter().filter_map(|cpu| enabled(*cpu)).collect();
        let is_equal = |(cpu, before): &(Cpu, Nanos)| enabled(*cpu) == Some((*cpu, *before));
        let mut ended: Vec<_> = before.into_iter().filter(is_equal).collect();
        if !ended.is_empty() {
            // The clock of some machines goes on once a tick only.
            thread::sleep(TICK);
            ended.retain(is_equal);
        }
        ended.into_iter().map(|(cpu, _)| cpu).collect()
    }

    /// Looks for CPUs that came online, and opens their events. Returns the positions of their
    /// rings; what was refused goes to `refusals`. The events of a CPU that goes offline end with it.
    pub(crate) fn follow_hotplug(
        &mut self,
        plan: &Plan,
        rings: &mut Rings,
        refusals: &mut Vec<Refusal>,
    ) -> Vec<usize> {
        let Ok(online) = cpus::online() else { return Vec::new() };
        let online: BTreeSet<Cpu> = online.into_iter().collect();
        let mut came: BTreeSet<Cpu> = online.difference(&self.online).copied().collect();
        let may_be_back = online.difference(&self.refused).copied().collect();
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(SELDOM) {
            came.extend(self.ended(&may_be_back, plan, rings));
        }
        if online == self.online && came.is_empty() {
            return Vec::new();
        }
        tracing::info!(?came, "CPUs online changed");
        self.online = online;
        let mut positions = Vec::new();
        for cpu in came {
            if let Some(old) = rings.position(cpu).and_then(|at| self.samplers.get(at)) {
                self.closed.add(plan.read(old), Records::Samples);
            }
            let is_sampling = self.is_sampling();
            let added = self.add_side_band(cpu, plan, rings).and_then(|()| match is_sampling {
                true => self.add_sampler(cpu, plan, rings),
                false => Ok(()),
            });
            match added {
                Ok(()) => {
                    self.refused.remove(&cpu);
                    positions.extend(rings.position(cpu));
                }
                Err(error) => {
                    self.refused.insert(cpu);
                    refusals.push(Refusal { what: Refused::Cpu(cpu), error });
                }
            }
        }
        positions
    }
}
